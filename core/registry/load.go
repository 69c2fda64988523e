package registry

import (
	"fmt"
	"path/filepath"

	"gopkg.in/yaml.v3"
)

// Load reads and checks the registry at path and, if there is one, the lock
// file beside it. A missing plugin program is no error (see [Plugin.Built]),
// nor is a missing lock: then SHA256 is empty. Any fault of either file is an
// error that names file, line and key; up to ten are told at once.
func Load(path string) (*Registry, error) {
	r, err := load(path)
	if err != nil {
		return nil, err
	}
	locked, err := readLock(r.Lock)
	if err != nil {
		return nil, err
	}
	for i := range r.Plugins {
		locked.apply(&r.Plugins[i], r.Lock)
	}
	return r, nil
}

// load is Load without the lock.
func load(path string) (*Registry, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("registry: %s: %w", path, err)
	}
	data, err := readFile(abs)
	if err != nil {
		return nil, err
	}
	return parse(abs, data)
}

// parse checks data as the registry at path, which is absolute; it reads no file.
func parse(path string, data []byte) (*Registry, error) {
	s := &parser{source: source{path: path}, dir: filepath.Dir(path), lines: map[string]int{}}
	top, err := s.document(data)
	if err != nil {
		return nil, err
	}
	r := &Registry{Path: path, Lock: lockPath(path)}
	s.mapping(top, "registry", fields{
		"plugins": func(n *yaml.Node) {
			s.list(n, "plugins", func(n *yaml.Node) { r.Plugins = append(r.Plugins, s.plugin(n)) })
		},
		"files": func(n *yaml.Node) {
			s.list(n, "files", func(n *yaml.Node) { r.Files = append(r.Files, s.file(n)) })
		},
	}, "plugins")
	if err := s.err(); err != nil {
		return nil, err
	}
	return r, nil
}

// parser turns the nodes of a registry into its entries.
type parser struct {
	source
	dir   string         // the registry's folder, absolute
	lines map[string]int // where each name that must be unique was first seen
}

// unique faults a name of its kind that was there before.
func (s *parser) unique(n *yaml.Node, kind, name string) {
	key := kind + " " + name
	if line, again := s.lines[key]; again {
		s.fault(n, "%s: is on line %d already, want it once", key, line)
		return
	}
	s.lines[key] = n.Line
}

// entryName names entry n of a list for messages, before n is checked.
func entryName(n *yaml.Node, kind string) string {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "name" && nameForm.ok(n.Content[i+1].Value) {
				return kind + " " + n.Content[i+1].Value
			}
		}
	}
	return kind + " without a name"
}
