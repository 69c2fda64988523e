package gguftest

import (
	"fmt"
	"path/filepath"
)

// The keys that gguf-split writes into every part.
var splitKeys = []string{"split.no", "split.count", "split.tensors.count"}

// Split cuts the model into parts, with counts[i] of its tensors, in order, in
// part i. As gguf-split does it gives all metadata to the first part and only
// the split keys to the others. It panics where the counts don't add up.
func (m *Model) Split(counts ...int) []*Model {
	var parts []*Model
	rest := m.Tensors
	for i, n := range counts {
		part := &Model{Version: m.Version, Tensors: rest[:n:n]}
		if i == 0 {
			part.Metadata = append(part.Metadata, m.Metadata...)
		}
		part.Set("split.no", uint16(i))
		part.Set("split.count", uint16(len(counts)))
		part.Set("split.tensors.count", int32(len(m.Tensors)))
		parts = append(parts, part)
		rest = rest[n:]
	}
	if len(rest) > 0 {
		panic(fmt.Sprintf("gguftest: %d tensors in no part", len(rest)))
	}
	return parts
}

// WriteParts writes parts as name-00001-of-0000N.gguf and so on into dir and
// returns their paths, in order.
func WriteParts(dir, name string, parts []*Model) ([]string, error) {
	var paths []string
	for i, p := range parts {
		path := filepath.Join(dir, fmt.Sprintf("%s-%05d-of-%05d.gguf", name, i+1, len(parts)))
		if err := p.Write(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
