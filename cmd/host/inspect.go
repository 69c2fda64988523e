package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/registry"
	"github.com/sluicehost/sluice/sdk/ggml"
)

type inspectCmd struct {
	registryPath
	File string `arg:"" help:"GGUF file; any part of a split model will do."`
	JSON bool   `name:"json" help:"As JSON, with long arrays whole."`
}

// Help is the command's long help.
func (inspectCmd) Help() string {
	return `Shows metadata, tensors, sizes by kind, which plugin would run the file and whether its types are supported. It starts no plugin and needs neither a GPU nor a registry.`
}

// inspection is what inspect tells of a file.
type inspection struct {
	File         string         `json:"file"`
	Version      uint32         `json:"version"` // of the format
	Size         int64          `json:"size"`    // bytes, of all parts
	Parts        []inspectPart  `json:"parts"`
	Architecture string         `json:"architecture"`
	Parameters   uint64         `json:"parameters"`
	Metadata     metadata       `json:"metadata"`
	Tensors      []inspectRow   `json:"tensors"`
	Kinds        []tally        `json:"kinds"`
	Types        []tally        `json:"types"`
	Supported    bool           `json:"supported"` // whether each tensor's type has a GPU form
	Plugin       *inspectPlugin `json:"plugin"`    // null where none runs it
	NoPlugin     string         `json:"no_plugin,omitempty"`
	Known        *inspectKnown  `json:"known"` // null where the registry does not list the file
}

type inspectPart struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Header int64  `json:"header"`
}

type inspectRow struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Shape  []uint64 `json:"shape"` // ne0 first
	Offset int64    `json:"offset"`
	Size   int64    `json:"size"`
	Kind   string   `json:"kind"`
}

// tally is a sum over tensors.
type tally struct {
	Name      string `json:"name"`
	Tensors   int    `json:"tensors"`
	Bytes     int64  `json:"bytes"`
	Supported *bool  `json:"supported,omitempty"` // of types
}

type inspectPlugin struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Path     string `json:"path"`
	Built    bool   `json:"built"`
	Locked   bool   `json:"locked"`
	Registry string `json:"registry,omitempty"`
}

type inspectKnown struct {
	Name     string            `json:"name"`
	Verified registry.Verified `json:"verified"`
}

// Run reads the header and tells what it says.
func (c *inspectCmd) Run(a *app) error {
	f, err := gguf.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	x := look(f, c.File)
	x.place(a, f, c.registryPath)
	if c.JSON {
		return a.printJSON(x)
	}
	return x.print(a.out)
}

// look gathers all that the file itself says.
func look(f *gguf.File, path string) *inspection {
	x := &inspection{File: path, Version: f.Version, Size: f.Size(), Metadata: metadata{f.Metadata}, Supported: true}
	x.Architecture, _ = architectureOf(f) // a file without one may be looked at, too
	for _, p := range f.Parts {
		x.Parts = append(x.Parts, inspectPart{p.Name, p.Size, p.HeaderSize})
	}
	x.Tensors = []inspectRow{} // [] in JSON
	for _, t := range f.Tensors {
		row := inspectRow{t.Name, t.Type.String(), t.Dims, t.Offset, t.Size, kindOf(t.Name)}
		x.Tensors = append(x.Tensors, row)
		values := uint64(1)
		for _, d := range t.Dims {
			values *= d
		}
		x.Parameters += values
		_, ok := ggml.Form(t.Type)
		x.Supported = x.Supported && ok
		add(&x.Kinds, row.Kind, t.Size, nil)
		add(&x.Types, row.Type, t.Size, &ok)
	}
	for _, sums := range [][]tally{x.Kinds, x.Types} {
		slices.SortStableFunc(sums, func(a, b tally) int { return cmp.Compare(b.Bytes, a.Bytes) })
	}
	return x
}

func add(sums *[]tally, name string, bytes int64, supported *bool) {
	i := slices.IndexFunc(*sums, func(t tally) bool { return t.Name == name })
	if i < 0 {
		i = len(*sums)
		*sums = append(*sums, tally{Name: name, Supported: supported})
	}
	(*sums)[i].Tensors++
	(*sums)[i].Bytes += bytes
}

// kindOf sorts a tensor by its name in llama.cpp's scheme.
func kindOf(name string) string {
	switch {
	case strings.HasPrefix(name, "token_embd."):
		return "embedding"
	case strings.HasPrefix(name, "output."):
		return "head"
	case strings.Contains(name, "_exps."):
		return "experts"
	}
	return "dense"
}

// place asks the registry which plugin runs the file and whether it knows it.
func (x *inspection) place(a *app, f *gguf.File, r registryPath) {
	p, err := registryFlags{registryPath: r}.plugins(a)
	if err != nil {
		x.NoPlugin = err.Error()
		return
	}
	for _, part := range f.Parts {
		if known, ok := p.FileLike(filepath.Base(part.Name), part.Size); ok {
			x.Known = &inspectKnown{known.Name, known.Verified}
		}
	}
	if x.Architecture == "" {
		x.NoPlugin = "the file names no general.architecture"
		return
	}
	entry, err := p.PluginFor(x.Architecture)
	if err != nil {
		x.NoPlugin = err.Error()
		return
	}
	x.Plugin = &inspectPlugin{entry.Name, entry.Version, entry.Path, entry.Built(), entry.SHA256 != "", p.Path}
}

// print writes the inspection as text.
func (x *inspection) print(out io.Writer) error {
	w := &errWriter{w: out}
	fmt.Fprintf(w, "%s: GGUF v%d, %s in %s, architecture %s, %s parameters\n\n",
		x.File, x.Version, size(uint64(x.Size)), plural(len(x.Parts), "part"), quoted(x.Architecture), count(x.Parameters))
	fmt.Fprintf(w, "metadata\n")
	table(w, func(t io.Writer) {
		for _, key := range x.Metadata.Keys() {
			v, _ := x.Metadata.Value(key)
			fmt.Fprintf(t, "  %s\t%s\t%s\n", quoted(key), typeName(v), short(v))
		}
	})
	fmt.Fprintf(w, "\ntensors (shape with the contiguous dim first)\n")
	table(w, func(t io.Writer) {
		for _, row := range x.Tensors {
			fmt.Fprintf(t, "  %s\t%s\t%v\t%s\t%s\n", quoted(row.Name), row.Type, row.Shape, size(uint64(row.Size)), row.Kind)
		}
	})
	fmt.Fprintf(w, "\nsizes by kind\n")
	table(w, func(t io.Writer) {
		for _, s := range x.Kinds {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Name, plural(s.Tensors, "tensor"), size(uint64(s.Bytes)))
		}
	})
	fmt.Fprintf(w, "\nsizes by type\n")
	table(w, func(t io.Writer) {
		for _, s := range x.Types {
			note := "supported"
			if !*s.Supported {
				note = "NOT supported: has no GPU form"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", s.Name, plural(s.Tensors, "tensor"), size(uint64(s.Bytes)), note)
		}
	})
	fmt.Fprintf(w, "\n%s\n", x.runs())
	if x.Known != nil {
		fmt.Fprintf(w, "known: looks like %s of the registry (by name and size), verified: %s\n", x.Known.Name, x.Known.Verified)
	}
	return w.err
}

// runs says what would run the file.
func (x *inspection) runs() string {
	if x.Plugin == nil {
		return "plugin: none: " + x.NoPlugin
	}
	state := "ready"
	switch {
	case !x.Plugin.Built:
		state = "not built: make build"
	case !x.Plugin.Locked:
		state = "not locked: host plugin lock"
	}
	return fmt.Sprintf("plugin: %s %s, %s (%s)", x.Plugin.Name, x.Plugin.Version, x.Plugin.Path, state)
}

// table aligns what write writes in columns that tabs end.
func table(w io.Writer, write func(io.Writer)) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	write(t)
	_ = t.Flush() // w keeps its error
}

// errWriter keeps the first error.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err == nil {
		_, e.err = e.w.Write(p)
	}
	return len(p), nil
}
