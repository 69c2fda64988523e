package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxBytes bounds a registry or lock file, and so the memory its parse takes.
const maxBytes = 1 << 20

// maxFaults bounds how many faults of one file are told; the walk ends there.
const maxFaults = 10

// readFile reads a plain file of at most maxBytes.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("registry: %s: %w", path, reason(err))
	}
	if !info.Mode().IsRegular() { // a pipe would block, a device never end
		return nil, fmt.Errorf("registry: %s: have %s, want a plain file", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("registry: %s: %w", path, reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("registry: %s: %w", path, reason(err))
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("registry: %s: have more than %d bytes, want at most that", path, maxBytes)
	}
	return data, nil
}

// source walks one YAML file as nodes and gathers faults with their lines. It
// does so by hand, since decoding into structs compares a mapping's keys each
// with each (minutes for 1 MiB) and expands aliases; nodes cost O(file).
type source struct {
	path   string
	faults []error
	more   bool // there are faults past maxFaults
}

// document parses data and returns the top node of its only document.
func (s *source) document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("registry: %s: is empty, want a YAML mapping", s.path)
	} else if err != nil {
		return nil, fmt.Errorf("registry: %s: %w", s.path, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, fmt.Errorf("registry: %s:%d: have a second YAML document, want one", s.path, second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("registry: %s: %w", s.path, err)
	}
	return doc.Content[0], nil
}

// fault notes what is wrong at n.
func (s *source) fault(n *yaml.Node, format string, args ...any) {
	if len(s.faults) >= maxFaults {
		s.more = true
		return
	}
	s.faults = append(s.faults, fmt.Errorf("registry: %s:%d: %s", s.path, n.Line, fmt.Sprintf(format, args...)))
}

// err returns the faults so far, a line each, or nil.
func (s *source) err() error {
	if s.more {
		return errors.Join(append(s.faults, fmt.Errorf("registry: %s: and more", s.path))...)
	}
	return errors.Join(s.faults...)
}

// pairs calls each for every key of mapping n, in order, once per key.
func (s *source) pairs(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		s.fault(n, "%s: have %s, want a mapping", what, kind(n))
		return
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !s.more; i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			s.fault(key, "%s: have %s as a key, want a word", what, kind(key))
		case seen[key.Value]:
			s.fault(key, "%s: have key %s twice, want it once", what, clip(key.Value))
		default:
			seen[key.Value] = true
			each(key, n.Content[i+1])
		}
	}
}

// fields maps the keys that a mapping may have to what takes each value.
type fields map[string]func(*yaml.Node)

// mapping hands each value of mapping n to its field; other keys are faults,
// and so are missing ones among required.
func (s *source) mapping(n *yaml.Node, what string, keys fields, required ...string) {
	var have []string
	s.pairs(n, what, func(key, value *yaml.Node) {
		take, known := keys[key.Value]
		if !known {
			s.fault(key, "%s: have unknown key %s, want one of %s", what, clip(key.Value), strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
			return
		}
		have = append(have, key.Value)
		take(value)
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, key := range required {
		if !slices.Contains(have, key) {
			s.fault(n, "%s: key %s is missing", what, key)
		}
	}
}

// list calls each for the items of sequence n, in order. Null is an empty list.
func (s *source) list(n *yaml.Node, what string, each func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		s.fault(n, "%s: have %s, want a list", what, kind(n))
		return
	}
	for i := 0; i < len(n.Content) && !s.more; i++ {
		each(n.Content[i])
	}
}

// text returns scalar n as it is written: 0.10 stays 0.10, and a hash of
// digits a hash. Not ok after a fault.
func (s *source) text(n *yaml.Node, what string) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Style&yaml.TaggedStyle != 0 {
		s.fault(n, "%s: have %s, want text", what, kind(n))
		return "", false
	}
	return n.Value, true
}

// integer returns decimal scalar n. Not ok after a fault.
func (s *source) integer(n *yaml.Node, what string) (v int64, ok bool) {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
		s.fault(n, "%s: have %s, want a whole number", what, kind(n))
		return 0, false
	}
	return v, true
}

// kind describes a node for an error.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return "the tag " + clip(n.Tag)
	}
	return clip(n.Value)
}

// clip quotes s for an error, shortened where it is long.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
