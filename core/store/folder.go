package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The files of a store; docs/store-format.md describes each.
const (
	manifestFile  = "manifest.json"
	headersFile   = "headers.bin"
	denseFile     = "dense.bin"
	expertsFile   = "experts.bin"
	checksumsFile = "checksums.bin"
	journalFile   = "ingest.journal" // while the store is not finished
	lockFile      = "lock"
	tempSuffix    = ".tmp" // of a file that is yet to get its name
)

// dataFiles are the files of a store but for the lock, the manifest first, so that
// a store of which some were removed claims nothing.
var dataFiles = []string{manifestFile, journalFile, checksumsFile, headersFile, denseFile, expertsFile}

// folder is a store's folder. Nothing is read or written outside of it, whatever
// links are in it (os.Root).
type folder struct {
	root *os.Root
	path string
}

// openFolder opens a folder that is there.
func openFolder(path string) (*folder, error) {
	info, err := os.Stat(path) // before opening: opening a pipe would wait for its writer
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s: have a file, want the folder of a store", path)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folder{root, path}, nil
}

// makeFolder opens a folder for an ingest, which it makes if need be. It refuses
// one that has files of someone else's.
func makeFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	d, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	foreign, err := d.foreign()
	if err == nil && foreign != "" {
		err = fmt.Errorf("%s: have a folder with other files in it (%.80q), want one that is empty or a store", path, foreign)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	if parent, err := openFolder(filepath.Dir(path)); err == nil { // so that the folder outlives a power failure
		_ = parent.sync()
		parent.close()
	}
	return d, nil
}

// foreign is the name of a file that no ingest has made; empty where there is none.
// Names alone don't tell: an ingest makes the lock before all else, and a store that
// was copied without it has a manifest or a journal.
func (d *folder) foreign() (string, error) {
	others, err := d.others()
	if err != nil {
		return "", err
	}
	if len(others) > 0 {
		return others[0], nil
	}
	for _, name := range dataFiles {
		_, named := d.root.Lstat(name)
		_, unnamed := d.root.Lstat(name + tempSuffix)
		if named != nil && unnamed != nil {
			continue
		}
		if _, err := d.root.Lstat(lockFile); errors.Is(err, fs.ErrNotExist) && !d.isStore() {
			return name, nil
		}
	}
	f, err := d.open(lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := bounded(f, holderBytes)
	if err != nil || len(text) > 0 && !bytes.HasPrefix(text, []byte(holderHead)) {
		return lockFile, nil //nolint:nilerr // one that is too long is someone else's
	}
	return "", nil
}

// others are the names in the folder that are not a store's.
func (d *folder) others() ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), tempSuffix)
		if name != lockFile && !slices.Contains(dataFiles, name) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func (d *folder) close() { _ = d.root.Close() }

// file is the path of a file, for errors.
func (d *folder) file(name string) string { return filepath.Join(d.path, name) }

// read reads a file of at most limit bytes.
func (d *folder) read(name string, limit int64) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := bounded(f, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.file(name), err)
	}
	return data, nil
}

// open opens a regular file to read.
func (d *folder) open(name string) (*os.File, error) { return d.openWith(name, 0) }

// openWith is open with flags of the system's.
func (d *folder) openWith(name string, flag int) (*os.File, error) {
	info, err := d.root.Lstat(name) // before opening: opening a pipe would wait for its writer
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: have a folder, link or special file, want a file", d.file(name))
	}
	var f *os.File
	if err == nil {
		f, err = d.root.OpenFile(name, os.O_RDONLY|flag, 0)
	}
	if err != nil {
		return nil, d.fault(name, err)
	}
	return f, nil
}

// fault words an error of a file.
func (d *folder) fault(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", d.file(name), fs.ErrNotExist)
	}
	return fmt.Errorf("%s: %w", d.file(name), err)
}

// write opens a file to write, which it makes if need be.
func (d *folder) write(name string) (*os.File, error) {
	info, err := d.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: have a folder, link or special file, want a file", d.file(name))
	}
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, d.fault(name, err)
	}
	return f, nil
}

// replace gives a file its contents at one stroke: after a power failure it has
// the old ones or the new.
func (d *folder) replace(name string, data []byte) error {
	temp := name + tempSuffix
	if err := d.remove(temp); err != nil {
		return err
	}
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return d.fault(temp, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		_ = d.remove(temp) // room for those that are tried next
		return d.fault(name, err)
	}
	return d.sync()
}

// remove removes a file if it is there.
func (d *folder) remove(name string) error {
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.fault(name, err)
	}
	return nil
}

// bytes is how much disk the files of a store take that are in the folder.
func (d *folder) bytes() int64 {
	n := int64(0)
	for _, name := range dataFiles {
		if info, err := d.root.Lstat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// clear removes all files of a store but its lock.
func (d *folder) clear() error {
	for _, name := range dataFiles {
		if err := d.remove(name); err != nil {
			return err
		}
		if name == manifestFile { // gone before what it speaks of
			if err := d.sync(); err != nil {
				return err
			}
		}
	}
	return d.clearTemps()
}

// clearTemps removes what a killed ingest had not yet given its name.
func (d *folder) clearTemps() error {
	for _, name := range dataFiles {
		if err := d.remove(name + tempSuffix); err != nil {
			return err
		}
	}
	return nil
}

// sync makes new, renamed and removed names last through a power failure.
func (d *folder) sync() error {
	if runtime.GOOS == "windows" { // has no such thing
		return nil
	}
	f, err := d.root.Open(".")
	if err != nil {
		return d.fault(".", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return d.fault(".", err)
	}
	return nil
}
