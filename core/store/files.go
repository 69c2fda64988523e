package store

import (
	"errors"
	"fmt"
	"os"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehost/sluice/core/gguf"
)

// Reading says how a source reads records.
type Reading struct {
	// Readers is how many reads of a file may be under way at once, at least 1. Each has a
	// file handle of its own, of which the system is told that its reads have no order: what
	// it would read ahead of a record's parts is another expert's.
	Readers int
	// Direct reads past the page cache.
	Direct bool
}

// ErrNoDirect says that a file can't be read past the page cache.
var ErrNoDirect = errors.New("its file system has no direct reads")

// maxReaders bounds the file handles.
const maxReaders = 1024

// opener opens a file to read, with flags of the system's.
type opener func(flag int) (*os.File, error)

// files are the files of an address space, without gaps, that are read at random.
type files struct {
	direct bool
	all    []*randomFile
}

// randomFile is one of them.
type randomFile struct {
	name    string
	base    int64 // of its first byte
	size    int64
	handles []*os.File
	idle    chan *os.File
}

// slack is how much more than what is wanted a buffer for direct reads must have.
const slack = 2 * align

// open adds a file at the end of the address space, and finds out whether it can be read as
// r says.
func (f *files) open(r Reading, name string, size int64, open opener) error {
	if r.Readers < 1 || r.Readers > maxReaders {
		return fmt.Errorf("store: readers: have %d, want 1 to %d", r.Readers, maxReaders)
	}
	x := &randomFile{name: name, size: size, idle: make(chan *os.File, r.Readers)}
	if n := len(f.all); n > 0 {
		x.base = f.all[n-1].base + f.all[n-1].size
	}
	f.direct, f.all = r.Direct, append(f.all, x)
	for range r.Readers {
		h, err := x.handle(r.Direct, open)
		if err != nil {
			return err
		}
		x.handles = append(x.handles, h)
		x.idle <- h
	}
	if r.Direct && size > 0 { // some systems refuse no sooner than at a read
		if _, err := f.view(aligned(slack), 1, x.base); err != nil {
			return refused(err)
		}
	}
	return nil
}

func (x *randomFile) handle(direct bool, open opener) (*os.File, error) {
	if direct {
		return openDirect(open)
	}
	h, err := open(0)
	if err == nil {
		readNothingAhead(h)
	}
	return h, err
}

// view reads n bytes at off, which lie in one file, by way of buf and returns where they are
// in it. Direct reads take the whole blocks around them: then buf must be aligned, and longer
// by slack. On an error, which names the file, the bytes that could be read come with it.
func (f *files) view(buf []byte, n int, off int64) ([]byte, error) {
	x := f.at(off)
	h := <-x.idle
	defer func() { x.idle <- h }()
	at, head, all := off-x.base, 0, n
	if f.direct {
		head = int(at % align)
		all = int(roundUp(uint64(head+n), align))
	}
	got, err := h.ReadAt(buf[:all], at-int64(head))
	if got < head+n { // behind the file's end there may be less than whole blocks
		got = max(head, got)
		return buf[head:got], gguf.ShortRead(x.name, at+int64(got-head), x.size, err)
	}
	return buf[head : head+n], nil
}

// at is the file that holds the byte at off.
func (f *files) at(off int64) *randomFile {
	i := sort.Search(len(f.all), func(i int) bool { return f.all[i].base+f.all[i].size > off })
	return f.all[min(i, len(f.all)-1)]
}

// room is how many bytes one view may give by way of buf.
func (f *files) room(buf []byte) int {
	if f != nil && f.direct {
		return len(buf) - slack
	}
	return len(buf)
}

// close closes all handles, side by side: with many it would be slow one by one.
func (f *files) close() error {
	if f == nil {
		return nil
	}
	var g errgroup.Group
	for _, x := range f.all {
		for _, h := range x.handles {
			g.Go(h.Close)
		}
	}
	return g.Wait()
}
