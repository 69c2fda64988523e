package registry

import (
	"path/filepath"

	"gopkg.in/yaml.v3"
)

// maxSize bounds a part in bytes: far above any model, far below overflow.
const maxSize = 1 << 50

// file reads one entry of files: a single file's keys lie in the entry itself,
// those of a split one in its parts.
func (s *parser) file(n *yaml.Node) File {
	var f File
	var single Part
	var verified string
	what := entryName(n, "file")
	keys := s.partFields(&single, what)
	keys["name"] = s.into(&f.Name, what+": name", nameForm)
	keys["architecture"] = s.into(&f.Architecture, what+": architecture", architectureForm)
	keys["repo"] = s.into(&f.Repo, what+": repo", repoForm)
	keys["revision"] = s.into(&f.Revision, what+": revision", revisionForm)
	keys["verified"] = s.into(&verified, what+": verified", verifiedForm)
	keys["notes"] = s.into(&f.Notes, what+": notes", noteForm)
	keys["parts"] = func(n *yaml.Node) { f.Parts = s.parts(n, what) }
	required := []string{"name", "architecture", "verified"}
	if hasKey(n, "repo") || hasKey(n, "revision") {
		required = append(required, "repo", "revision")
	}
	if !hasKey(n, "parts") {
		required = append(required, "file", "size", "sha256")
	} else if hasKey(n, "file") || hasKey(n, "size") || hasKey(n, "sha256") {
		s.fault(n, "%s: have parts beside file, size or sha256, want either", what)
	}
	s.mapping(n, what, keys, required...)
	if len(f.Parts) == 0 {
		f.Parts = []Part{single}
		s.part(n, single)
	}
	f.Verified = Verified(verified)
	if f.Name != "" {
		s.unique(n, "file", f.Name)
	}
	if f.Repo == "" { // shipped with the registry
		for i := range f.Parts {
			f.Parts[i].Path = filepath.Join(s.dir, filepath.FromSlash(f.Parts[i].File))
		}
	}
	return f
}

// parts reads the files of a split model.
func (s *parser) parts(n *yaml.Node, what string) []Part {
	var out []Part
	s.list(n, what+": parts", func(n *yaml.Node) {
		var p Part
		s.mapping(n, what+": part", s.partFields(&p, what+": part"), "file", "size", "sha256")
		out = append(out, p)
		s.part(n, p)
	})
	if len(n.Content) == 0 {
		s.fault(n, "%s: parts: have none, want at least one", what)
	}
	return out
}

// partFields are the keys of one file of a model.
func (s *parser) partFields(p *Part, what string) fields {
	return fields{
		"file":   s.into(&p.File, what+": file", pathForm),
		"sha256": s.into(&p.SHA256, what+": sha256", sha256Form),
		"size": func(n *yaml.Node) {
			v, ok := s.integer(n, what+": size")
			if ok && (v < 1 || v > maxSize) {
				s.fault(n, "%s: size: have %d bytes, want 1 to %d", what, v, int64(maxSize))
			}
			p.Size = v
		},
	}
}

// part faults a file whose contents another entry has too: a hash names one model.
func (s *parser) part(n *yaml.Node, p Part) {
	if p.SHA256 != "" {
		s.unique(n, "sha256", p.SHA256)
	}
}

// hasKey reports whether mapping n has the key.
func hasKey(n *yaml.Node, key string) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}
