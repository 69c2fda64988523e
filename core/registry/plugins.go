package registry

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// The protocol versions that a plugin may list: their largest and their count.
const (
	maxProtocol  = 1 << 16
	maxProtocols = 64
)

// plugin reads one entry of plugins.
func (s *parser) plugin(n *yaml.Node) Plugin {
	var p Plugin
	what := entryName(n, "plugin")
	s.mapping(n, what, fields{
		"name":          s.into(&p.Name, what+": name", nameForm),
		"version":       s.into(&p.Version, what+": version", versionForm),
		"architectures": func(n *yaml.Node) { p.Architectures = s.architectures(n, what+": architectures") },
		"protocol":      func(n *yaml.Node) { p.Protocols = s.protocols(n, what+": protocol") },
		"command":       func(n *yaml.Node) { p.Path = s.command(n, what+": command") },
		"description":   s.into(&p.Description, what+": description", noteForm),
		"source":        s.into(&p.Source, what+": source", noteForm),
	}, "name", "version", "architectures", "protocol", "command")
	if p.Name != "" {
		s.unique(n, "plugin", p.Name)
	}
	return p
}

// architectures reads a list that shares no entry with another plugin's.
func (s *parser) architectures(n *yaml.Node, what string) []string {
	var out []string
	s.list(n, what, func(n *yaml.Node) {
		if a := s.word(n, what, architectureForm); a != "" {
			s.unique(n, "architecture", a)
			out = append(out, a)
		}
	})
	if len(n.Content) == 0 && (n.Kind == yaml.SequenceNode || n.Tag == "!!null") {
		s.fault(n, "%s: have none, want at least one", what)
	}
	return out
}

// command returns the absolute path of a plugin's program. A command is a path
// below the registry's folder, so that the folder can move as a whole and the
// file names no program elsewhere (a link in the folder may lead out of it).
func (s *parser) command(n *yaml.Node, what string) string {
	rel := s.word(n, what, pathForm)
	if rel == "" {
		return ""
	}
	return programPath(s.dir, rel, runtime.GOOS)
}

// programPath is where the program of command rel lies on a system.
func programPath(dir, rel, goos string) string {
	if goos == "windows" && !strings.HasSuffix(rel, ".exe") {
		rel += ".exe"
	}
	return filepath.Join(dir, filepath.FromSlash(rel))
}

// protocols reads 3, [1, 3] or 1-3 (a range, both ends in) into ascending versions.
func (s *parser) protocols(n *yaml.Node, what string) []int {
	var out []int
	add := func(n *yaml.Node, v int64) {
		if v < 1 || v > maxProtocol {
			s.fault(n, "%s: have %s, want versions from 1 to %d", what, kind(n), maxProtocol)
			return
		}
		out = append(out, int(v))
	}
	one := func(n *yaml.Node) {
		if v, ok := s.integer(n, what); ok {
			add(n, v)
		}
	}
	lo, hi, isRange := protocolRange(n)
	switch {
	case isRange:
		for v := lo; v <= hi; v++ {
			add(n, v)
		}
	case n.Kind == yaml.ScalarNode && n.Tag == "!!int":
		one(n)
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0 && len(n.Content) <= maxProtocols:
		s.list(n, what, one)
	default:
		s.fault(n, "%s: have %s, want a version, a list of at most %d, or a range as 1-2", what, kind(n), maxProtocols)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// protocolRange reads n as lo-hi, of at most maxProtocols versions.
func protocolRange(n *yaml.Node) (lo, hi int64, ok bool) {
	from, to, ok := strings.Cut(n.Value, "-")
	if !ok || n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return 0, 0, false
	}
	lo, err1 := strconv.ParseInt(from, 10, 32)
	hi, err2 := strconv.ParseInt(to, 10, 32)
	return lo, hi, err1 == nil && err2 == nil && lo > 0 && lo <= hi && hi-lo < maxProtocols
}
