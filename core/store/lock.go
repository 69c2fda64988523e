package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("locked")

// A lock's file says who holds it: holderHead, the process's number and its machine.
const (
	holderHead  = "process "
	holderBytes = 512
)

// lock makes this process the store's only writer until unlock, or until it ends
// in whatever way. Another writer is told who holds the store.
func (d *folder) lock() (unlock func(), err error) {
	for {
		f, err := d.write(lockFile)
		if err != nil {
			return nil, err
		}
		if err := lockWhole(f); err != nil {
			defer f.Close()
			if errors.Is(err, errLocked) {
				return nil, fmt.Errorf("%s: another process is at work on this store: %s: wait for it, or end it", d.path, holder(f))
			}
			return nil, d.fault(lockFile, err)
		}
		// The holder before may have removed the file between our opening and
		// locking it, and then this lock keeps no one out.
		if named, err := d.root.Stat(lockFile); err == nil {
			if mine, err := f.Stat(); err == nil && os.SameFile(named, mine) {
				return d.hold(f)
			}
		}
		f.Close()
	}
}

// hold writes who holds the lock into its file.
func (d *folder) hold(f *os.File) (unlock func(), err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, holderHead+"%d on %.200s\n", os.Getpid(), host), 0)
	}
	if err != nil && !diskFull(err) { // on a full disk the name is missing, which the lock does without
		f.Close()
		return nil, d.fault(lockFile, err)
	}
	return func() {
		_ = f.Truncate(0) // a nicety: the lock ends with the file
		f.Close()
	}, nil
}

// holder is what the lock's holder wrote.
func holder(f *os.File) string {
	data, err := bounded(f, holderBytes)
	text := strings.TrimSpace(strings.ToValidUTF8(string(data), "?"))
	if err != nil || text == "" {
		return "unknown process"
	}
	return fmt.Sprintf("%.200s", text)
}
