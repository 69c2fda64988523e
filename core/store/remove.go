package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Remove deletes a store. It deletes the files that a store has and no others, and
// then the folder, unless that has more, and the link to it if dir is one. It fails, with nothing deleted, where
// there is no store, or while an ingest is writing it.
func Remove(dir string) error {
	d, err := openFolder(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer d.close()
	if !d.isStore() {
		return fmt.Errorf("store: %s: not a store, so nothing was deleted", dir)
	}
	unlock, err := d.lock()
	if err == nil {
		err = d.clear()
		held := d.remove(lockFile)
		unlock()
		if held != nil { // some systems keep files that are open
			held = d.remove(lockFile)
		}
		err = errors.Join(err, held)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	others, err := d.others()
	if err == nil && len(others) > 0 {
		return fmt.Errorf("store: %s: the store is deleted, the folder is not: have other files in it (%.80q)", dir, others[0])
	}
	d.close()
	if err := removeFolder(dir); err != nil {
		return fmt.Errorf("store: the store is deleted, the folder is not: %w", err)
	}
	return nil
}

// removeFolder removes a folder by whatever path leads to it, unless something is in it,
// and the link that the path may be.
func removeFolder(dir string) error {
	dir, err := filepath.Abs(dir) // systems refuse to remove "." and a link with a slash after it
	if err != nil {
		return err
	}
	folder, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, path := range slices.Compact([]string{folder, dir}) {
		switch err := os.Remove(path); {
		case errors.Is(err, syscall.ENOTEMPTY):
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}
