package main

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/core/stream"
)

// eviction is the value of --evict.
type eviction struct {
	name string  // lru or freq
	half float64 // freq: tokens
}

// defaultHalf is the half-life of --evict freq in tokens (docs/streaming.md).
const defaultHalf = 8

// maxHalf is far above any context.
const maxHalf = 1e9

// UnmarshalText reads lru, freq or freq:TOKENS.
func (e *eviction) UnmarshalText(text []byte) error {
	name, half, given := strings.Cut(string(text), ":")
	*e = eviction{name: name, half: defaultHalf}
	switch {
	case name == "lru" && !given:
		return nil
	case name == "freq" && given:
		n, err := parseNumber(half)
		if err != nil || !(n > 0 && n <= maxHalf) {
			return fmt.Errorf("have a half-life of %q tokens, want a number of more than 0 and at most 1e9, such as 8", half)
		}
		e.half = n
		return nil
	case name == "freq":
		return nil
	}
	return fmt.Errorf("have %q, want lru, freq or freq:TOKENS", text)
}

// String is what UnmarshalText reads.
func (e eviction) String() string {
	if e.name == "freq" {
		return fmt.Sprintf("freq:%v", e.half)
	}
	return e.name
}

// policy makes the policy of a bank.
func (e eviction) policy() func(keys int) stream.Policy {
	if e.name == "freq" {
		return func(keys int) stream.Policy { return stream.NewDecayed(keys, e.half) }
	}
	return stream.NewLRU
}
