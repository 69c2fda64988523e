package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gopkg.in/yaml.v3"
)

// lockHead is the comment at the top of a lock file.
const lockHead = `# Written by "host plugin lock" (make build does it): the SHA-256 of each plugin's program by platform.
# The host starts no program whose hash differs. Not for editing.
`

// lockFile is the contents of a lock file, in the registry's order.
type lockFile struct {
	missing bool // there is no file
	Plugins []lockEntry
}

// lockEntry pins the programs of one plugin.
type lockEntry struct {
	Name    string
	Version string            // the registry's when it was locked
	SHA256  map[string]string `yaml:"sha256"` // by GOOS/GOARCH, lower-case hex
}

// lockPath is where the lock of the registry at path lies: registry.lock.yaml
// for registry.yaml.
func lockPath(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".lock.yaml"
}

// platform is the key of this system's programs.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Lock hashes the plugin programs of the registry at path that are built for
// this platform, and writes the lock file beside it. The hashes of other
// platforms stay as long as the plugin's version does. The file appears whole
// or not at all, and equal inputs give equal bytes. Programs that are not
// there get no hash; one that can't be read is an error, and so is a lock file
// that is not valid.
func Lock(path string) error {
	r, err := load(path)
	if err != nil {
		return err
	}
	old, err := readLock(r.Lock)
	if err != nil {
		return fmt.Errorf("%w\nregistry: delete %s and lock again", err, r.Lock)
	}
	var next lockFile
	for _, p := range r.Plugins {
		e := lockEntry{Name: p.Name, Version: p.Version, SHA256: map[string]string{}}
		if was := old.entry(p.Name); was != nil && was.Version == p.Version {
			e.SHA256 = was.SHA256
		}
		delete(e.SHA256, platform())
		sum, err := hashFile(p.Path)
		if err == nil {
			e.SHA256[platform()] = sum
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("registry: plugin %s: %w", p.Name, err)
		}
		if len(e.SHA256) > 0 {
			next.Plugins = append(next.Plugins, e)
		}
	}
	return next.write(r.Lock)
}

// entry returns the entry of a plugin, or nil.
func (l *lockFile) entry(name string) *lockEntry {
	for i := range l.Plugins {
		if l.Plugins[i].Name == name {
			return &l.Plugins[i]
		}
	}
	return nil
}

// apply sets p.SHA256, or p.Unlocked where the lock at path has no hash for it.
func (l *lockFile) apply(p *Plugin, path string) {
	const remedy = `: run "host plugin lock"`
	e := l.entry(p.Name)
	switch {
	case l.missing:
		p.Unlocked = "there is no lock file " + path + remedy
	case e == nil:
		p.Unlocked = path + " has no entry for it" + remedy
	case e.Version != p.Version:
		p.Unlocked = fmt.Sprintf("%s locks version %s, the registry has %s: build it, then run \"host plugin lock\"", path, e.Version, p.Version)
	case e.SHA256[platform()] == "":
		p.Unlocked = path + " has no hash for " + platform() + remedy
	default:
		p.SHA256 = e.SHA256[platform()]
	}
}

// readLock reads the lock file at path; none is an empty lock.
func readLock(path string) (*lockFile, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return &lockFile{missing: true}, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parseLock(path, data)
}

// parseLock checks data as the lock file at path; it reads no file.
func parseLock(path string, data []byte) (*lockFile, error) {
	s := &parser{source: source{path: path}, lines: map[string]int{}}
	top, err := s.document(data)
	if err != nil {
		return nil, err
	}
	var l lockFile
	s.mapping(top, "lock", fields{"plugins": func(n *yaml.Node) {
		s.list(n, "plugins", func(n *yaml.Node) { l.Plugins = append(l.Plugins, s.locked(n)) })
	}}, "plugins")
	return &l, s.err()
}

// locked reads one entry of a lock file.
func (s *parser) locked(n *yaml.Node) lockEntry {
	e := lockEntry{SHA256: map[string]string{}}
	what := entryName(n, "plugin")
	s.mapping(n, what, fields{
		"name":    s.into(&e.Name, what+": name", nameForm),
		"version": s.into(&e.Version, what+": version", versionForm),
		"sha256": func(n *yaml.Node) {
			s.pairs(n, what+": sha256", func(key, value *yaml.Node) {
				on := s.word(key, what+": sha256", platformForm)
				e.SHA256[on] = s.word(value, what+": sha256: "+on, sha256Form)
			})
		},
	}, "name", "version", "sha256")
	if e.Name != "" {
		s.unique(n, "plugin", e.Name)
	}
	return e
}

// write replaces the file at path by l in one step.
func (l *lockFile) write(path string) (err error) {
	var b bytes.Buffer
	b.WriteString(lockHead)
	enc := yaml.NewEncoder(&b) // sorts the platforms
	enc.SetIndent(2)
	if err := enc.Encode(struct{ Plugins []lockEntry }{l.Plugins}); err != nil {
		panic("BUG: registry: lock does not encode: " + err.Error())
	}
	// The name ends as a lock's does, so that git ignores one left by a kill.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*.lock.yaml")
	if err != nil {
		return fmt.Errorf("registry: %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("registry: %s: %w", path, err), os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(b.Bytes())
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// hashFile returns the SHA-256 of a plain file, in hex.
func hashFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: have %s, want a program", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
