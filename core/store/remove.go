package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Remove deletes a store. It deletes the files that a store has and no others, and
// then the folder, unless that has more. It fails, with nothing deleted, where
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
	if err := os.Remove(dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
