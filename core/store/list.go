package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// State is how far a store is.
type State string

// The states of a store.
const (
	Complete   State = "complete"
	Unfinished State = "unfinished" // an ingest goes on with it
	Damaged    State = "damaged"    // or of another version
)

// Info is what can be told of a store without reading its data.
type Info struct {
	Dir      string
	State    State
	Fault    string    // why it is damaged
	Manifest *Manifest // nil where it is damaged; without checksums where it is unfinished
	Size     int64     // bytes of its files now
	Done     float64   // of an unfinished one, how much of it is on disk for good, 0 to 1
	Changed  time.Time // of the manifest or the journal
}

// IsStore says whether a folder has a store in it, in whatever state.
func IsStore(dir string) bool {
	d, err := openFolder(dir)
	if err != nil {
		return false
	}
	defer d.close()
	return d.isStore()
}

// isStore looks for a manifest or a journal that begins as ours do.
func (d *folder) isStore() bool {
	if f, err := d.open(manifestFile); err == nil {
		defer f.Close()
		head := make([]byte, len(sealHead))
		if _, err := f.ReadAt(head, 0); err == nil && isManifest(head) {
			return true
		}
	}
	head, _, err := d.readJournal()
	return head != nil || errors.Is(err, errVersion)
}

// List finds the stores that are folders right below root, in the order of their
// names; none where root is not there. Other folders are passed over.
func List(root string) ([]Info, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	var out []Info
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if info, err := Look(dir); err == nil {
			out = append(out, info)
		}
	}
	return out, nil
}

// Look tells of the store in a folder. It fails where there is none.
func Look(dir string) (Info, error) {
	x := Info{Dir: dir}
	d, err := openFolder(dir)
	if err != nil {
		return x, fmt.Errorf("store: %w", err)
	}
	defer d.close()
	if !d.isStore() {
		return x, fmt.Errorf("store: %s: not a store", dir)
	}
	x.Size = d.bytes()
	said := manifestFile
	s, err := openStore(d)
	switch {
	case err == nil:
		x.State, x.Manifest = Complete, s.Manifest
		_ = s.closeFiles()
	case errors.Is(err, ErrUnfinished):
		said = journalFile
		x.State, err = Unfinished, x.unfinished(d)
	}
	if err != nil {
		x.State, x.Fault = Damaged, err.Error()
	}
	if info, err := d.root.Lstat(said); err == nil {
		x.Changed = info.ModTime()
	}
	return x, nil
}

// unfinished tells how far an ingest got.
func (x *Info) unfinished(d *folder) error {
	head, sums, err := d.readJournal()
	if err != nil {
		return err
	}
	if err := head.Manifest.check(); err != nil {
		return err
	}
	x.Manifest = head.Manifest
	l, err := head.Manifest.layout()
	if total := l.dense + l.experts; err == nil && total > 0 {
		dense, experts := l.end(min(len(sums), l.sums))
		x.Done = float64(dense+experts) / float64(total)
	}
	return err
}
