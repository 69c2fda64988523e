package main

import (
	"strings"
	"testing"
)

// TestEviction: what --evict takes comes out as it went in, and what it refuses says the range.
func TestEviction(t *testing.T) {
	for text, want := range map[string]string{"lru": "lru", "freq": "freq:8", "freq:2.5": "freq:2.5", "freq:1000000000": "freq:1e+09"} {
		var e eviction
		if err := e.UnmarshalText([]byte(text)); err != nil || e.String() != want {
			t.Errorf("%s: have %v, %v, want %s", text, e, err, want)
		}
	}
	for text, want := range map[string]string{
		"freq:1e308": "more than 0 and at most 1e9", "freq:0": "more than 0 and at most 1e9", "freq:-1": "more than 0", "freq:": "more than 0",
		"lru:3": "want lru, freq or freq:TOKENS", "fifo": "want lru, freq or freq:TOKENS", "": "want lru, freq or freq:TOKENS",
	} {
		if err := new(eviction).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have %v, want %q", text, err, want)
		}
	}
}
