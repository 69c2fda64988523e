package gguf_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gguf/gguftest"
)

// readParts reads parts from memory.
func readParts(t *testing.T, parts []*gguftest.Model) (files []*gguf.File, space []byte) {
	t.Helper()
	for i, p := range parts {
		b := p.Encode()
		f, err := gguf.Read(bytes.NewReader(b), int64(len(b)), fmt.Sprintf("part %d", i))
		if err != nil {
			t.Fatal(err)
		}
		files, space = append(files, f), append(space, b...)
	}
	return files, space
}

func TestJoin(t *testing.T) {
	for _, counts := range [][]int{{2, 3}, {2, 1, 2}, {5}} {
		parts := splitModel(counts...)
		files, space := readParts(t, parts)
		f, err := gguf.Join(files)
		if err != nil {
			t.Fatal(err)
		}
		checkWhole(t, f, parts, space)
	}
}

func TestRefuseJoin(t *testing.T) {
	all := func() []*gguf.File { files, _ := readParts(t, splitModel(2, 1, 2)); return files }
	for name, c := range map[string]struct {
		parts []*gguf.File
		want  []string
	}{
		"none":    {nil, []string{"have no parts"}},
		"one":     {all()[:1], []string{"part 0", "split.count", "have one part, want all 3"}},
		"two":     {all()[:2], []string{"part 0", "split.count", "have 3, want 2"}},
		"swapped": {[]*gguf.File{all()[1], all()[0], all()[2]}, []string{"part 1", "split.no", "have 1, want 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gguf.Join(c.parts)
			wantError(t, err, c.want...)
		})
	}
}

func TestSplitNames(t *testing.T) {
	dir := "a" + string(filepath.Separator)
	for name, want := range map[string][]string{
		dir + "m.gguf":                {dir + "m.gguf"},
		"m-00002-of-00003.gguf":       {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"},
		dir + "m-00001-of-00001.gguf": {dir + "m-00001-of-00001.gguf"},
		"m-00002-of-00003.bin":        {"m-00002-of-00003.bin"},
	} {
		if have, err := gguf.SplitNames(name); err != nil || !slices.Equal(have, want) {
			t.Errorf("%s: have %q, %v, want %q", name, have, err, want)
		}
	}
	_, err := gguf.SplitNames("m-00004-of-00003.gguf")
	wantError(t, err, "m-00004-of-00003.gguf", "have part 4 of 3")
}
