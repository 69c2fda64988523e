// Package registry reads registry.yaml and its lock file: which plugin process
// serves which general.architecture, and which model files are known, with
// their hashes and how far each was verified. It starts no plugin (core/plugin
// does), opens no model and fetches nothing. Start at [Find], then [Load].
package registry

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Registry is one checked registry.yaml together with its lock file.
type Registry struct {
	Path    string   `json:"path"` // absolute path of the YAML file
	Lock    string   `json:"lock"` // absolute path of its lock file, which may not exist
	Plugins []Plugin `json:"plugins"`
	Files   []File   `json:"files"`
}

// Plugin is one architecture plugin: a program beside the registry.
type Plugin struct {
	Name          string   `json:"name"`
	Version       string   `json:"version"`
	Architectures []string `json:"architectures"` // values of general.architecture it serves
	Protocols     []int    `json:"protocols"`     // protocol versions it speaks, ascending
	Description   string   `json:"description,omitempty"`
	Source        string   `json:"source,omitempty"` // where its code is, for people
	Path          string   `json:"path"`             // absolute; need not exist
	SHA256        string   `json:"sha256,omitempty"` // of the binary on this platform, lower-case hex; empty = none locked
	Unlocked      string   `json:"unlocked,omitempty"`
	// Unlocked says why SHA256 is empty and what to do; empty when it is not.
}

// Built reports whether the plugin's program is there, as a plain file. Whether
// it runs is for core/plugin to find out.
func (p Plugin) Built() bool {
	info, err := os.Stat(p.Path)
	return err == nil && info.Mode().IsRegular()
}

// Verified says what a model file's support rests on.
type Verified string

// The strengths of a verification, weakest first.
const (
	None      Verified = "none"      // nothing yet: no plugin that was tested on its architecture
	Golden    Verified = "golden"    // tiny files of the same architecture match reference logits
	Synthetic Verified = "synthetic" // a file of the same shapes and types with made-up weights ran
	Real      Verified = "real"      // this very file ran and matched a reference
)

// File is one known model: a GGUF, or the parts of a split one in order.
type File struct {
	Name         string   `json:"name"`
	Architecture string   `json:"architecture"`       // its general.architecture
	Repo         string   `json:"repo,omitempty"`     // owner/name on the model hub; empty = shipped with the registry
	Revision     string   `json:"revision,omitempty"` // commit of Repo, 40 hex digits
	Parts        []Part   `json:"parts"`              // at least one
	Verified     Verified `json:"verified"`
	Notes        string   `json:"notes,omitempty"`
}

// Part is one file of a model.
type Part struct {
	File   string `json:"file"`           // slash-separated, inside Repo or the registry's folder
	Size   int64  `json:"size"`           // bytes, above 0
	SHA256 string `json:"sha256"`         // lower-case hex
	Path   string `json:"path,omitempty"` // absolute, where the model ships with the registry
}

// Size is the sum of the parts' sizes in bytes.
func (f File) Size() int64 {
	var sum int64
	for _, p := range f.Parts {
		sum += p.Size
	}
	return sum
}

// ErrNoPlugin is what [Registry.PluginFor] wraps where no plugin serves an
// architecture.
var ErrNoPlugin = errors.New("no plugin")

// PluginFor returns the plugin that serves general.architecture, or an error
// that wraps [ErrNoPlugin] and names the architectures there are.
func (r *Registry) PluginFor(architecture string) (Plugin, error) {
	var have []string
	for _, p := range r.Plugins {
		if slices.Contains(p.Architectures, architecture) {
			return p, nil
		}
		have = append(have, p.Architectures...)
	}
	slices.Sort(have)
	there := "it lists none"
	if len(have) > 0 {
		there = "it has " + strings.Join(have, ", ")
	}
	return Plugin{}, fmt.Errorf("registry: %s: %w for architecture %s: %s: add its plugin there, or try one with --plugin-dev",
		r.Path, ErrNoPlugin, clip(architecture), there)
}

// FileByName returns the model listed under name.
func (r *Registry) FileByName(name string) (File, bool) {
	for _, f := range r.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// FileBySHA256 returns the model that has a part with this hash (lower-case hex).
func (r *Registry) FileBySHA256(sum string) (File, bool) {
	return r.fileWith(func(p Part) bool { return p.SHA256 == sum })
}

// FileLike returns the model that has a part of this size in bytes whose last
// path element is base: a guess that costs no hashing, good enough to show.
func (r *Registry) FileLike(base string, size int64) (File, bool) {
	return r.fileWith(func(p Part) bool {
		return p.Size == size && p.File[strings.LastIndexByte(p.File, '/')+1:] == base
	})
}

func (r *Registry) fileWith(match func(Part) bool) (File, bool) {
	for _, f := range r.Files {
		if slices.ContainsFunc(f.Parts, match) {
			return f, true
		}
	}
	return File{}, false
}
