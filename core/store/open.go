package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/program"
)

// Store is an open packed store. It stands in for the GGUF that it was made from.
type Store struct {
	Manifest *Manifest
	// File is the GGUF's metadata and tensor table. Of its bytes only those of the
	// headers and of the dense tensors can be read. Its Close does nothing.
	File *gguf.File

	path        string
	layout      *layout
	dense       *dense
	experts     *os.File
	headers     *os.File
	expertsPath string
	sums        []uint32      // all checksums
	seen        []atomic.Bool // which of them were found right since the store was opened
}

// ErrUnfinished says that a store's ingest has not come to its end.
var ErrUnfinished = errors.New("its ingest is not finished: run it again, it goes on from where it was")

var errNoStore = errors.New("not a store: it has no " + manifestFile)

// Open opens a finished store. It checks the manifest, the header and the list of
// checksums, and that all files have their sizes; the data are checked when they
// are first read. An error names the file at fault.
func Open(dir string) (*Store, error) {
	d, err := openFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer d.close()
	s, err := openStore(d)
	if err != nil {
		return nil, fmt.Errorf("store: %w", advised(err))
	}
	return s, nil
}

// advised is an error of openStore's with what to do about it. The disk's and the system's
// own errors speak for themselves, but for a file that is missing.
func advised(err error) error {
	var system *fs.PathError
	switch {
	case errors.Is(err, ErrUnfinished), errors.Is(err, errVersion), errors.Is(err, errNoStore):
		return err
	case errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return fmt.Errorf("%w: ingest again with --force", err)
}

func openStore(d *folder) (_ *Store, err error) {
	s := &Store{path: d.path}
	if s.Manifest, err = d.readManifest(); err != nil {
		return nil, err
	}
	headers, err := d.readHeaders(s.Manifest)
	if err != nil {
		return nil, err
	}
	images, err := s.parse(headers)
	if err != nil {
		return nil, err
	}
	if s.layout, err = layoutOf(s.Manifest, s.File); err != nil {
		return nil, fmt.Errorf("%s: %w", d.file(manifestFile), err)
	}
	if s.sums, err = d.readSums(s.Manifest, s.layout); err != nil {
		return nil, err
	}
	s.seen = make([]atomic.Bool, len(s.sums))
	file, err := d.openSized(denseFile, s.layout.dense)
	if err != nil {
		return nil, err
	}
	s.dense = &dense{store: s, file: file, path: d.file(denseFile), scratch: newBuffers(blockBytes)}
	if s.experts, err = d.openSized(expertsFile, s.layout.experts); err != nil {
		file.Close()
		return nil, err
	}
	if s.headers, err = d.openSized(headersFile, s.layout.headers); err != nil {
		return nil, errors.Join(err, file.Close(), s.experts.Close())
	}
	at := int64(0)
	for i, x := range images {
		n := s.Manifest.Parts[i].Header
		x.show(io.NewSectionReader(s.headers, at, n), s.File.Parts[i].Offset, s.layout.tensors, s.dense)
		at += n
	}
	s.expertsPath = d.file(expertsFile)
	return s, nil
}

// readManifest reads the manifest, or says why there is none.
func (d *folder) readManifest() (*Manifest, error) {
	data, err := d.read(manifestFile, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := d.root.Lstat(journalFile); err == nil {
			return nil, fmt.Errorf("%s: %w", d.path, ErrUnfinished)
		}
		return nil, fmt.Errorf("%s: %w", d.path, errNoStore)
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.file(manifestFile), err)
	}
	return m, nil
}

// readHeaders reads the parts' headers and checks them.
func (d *folder) readHeaders(m *Manifest) ([][]byte, error) {
	size := int64(0)
	for _, p := range m.Parts {
		size += p.Header
	}
	f, err := d.openSized(headersFile, size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make([]byte, size) // no larger than the file is
	if _, err := f.ReadAt(all, 0); err != nil {
		return nil, d.fault(headersFile, err)
	}
	var headers [][]byte
	for _, p := range m.Parts {
		header := all[:p.Header:p.Header]
		all = all[p.Header:]
		if sum := sha256.Sum256(header); hex.EncodeToString(sum[:]) != p.SHA256 {
			return nil, fmt.Errorf("%s: the header of %s: its SHA-256 is not the manifest's: the store is damaged", d.file(headersFile), p.Name)
		}
		headers = append(headers, header)
	}
	return headers, nil
}

// parse makes s.File of the headers, over images that show nothing yet.
func (s *Store) parse(headers [][]byte) ([]*image, error) {
	var images []*image
	var parts []*gguf.File
	for i, p := range s.Manifest.Parts {
		x := &image{header: headers[i], size: p.Size}
		f, err := gguf.Read(x, p.Size, fmt.Sprintf("%s (%s)", s.path, p.Name))
		if err != nil {
			return nil, err
		}
		x.header = nil
		images, parts = append(images, x), append(parts, f)
	}
	var err error
	if s.File, err = gguf.Join(parts); err != nil {
		return nil, err
	}
	if tableSum(s.File) != s.Manifest.Table {
		return nil, fmt.Errorf("%s: have another tensor table than the manifest's: the store was made by another version of this program", s.path)
	}
	return images, nil
}

// readSums reads the checksums and checks them.
func (d *folder) readSums(m *Manifest, l *layout) ([]uint32, error) {
	f, err := d.openSized(checksumsFile, 4*int64(l.sums))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, 4*l.sums) // no larger than the file is
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, d.fault(checksumsFile, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != m.Checksums {
		return nil, fmt.Errorf("%s: its SHA-256 is not the manifest's: the store is damaged", d.file(checksumsFile))
	}
	return decodeSums(data), nil
}

// openSized opens a file to read that must have so many bytes.
func (d *folder) openSized(name string, size int64) (*os.File, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("have %d bytes, want %d: the store is damaged", info.Size(), size)
	}
	if err != nil {
		f.Close()
		return nil, d.fault(name, err)
	}
	return f, nil
}

// reopen opens the file of records once more, with flags of the system's.
func (s *Store) reopen(flag int) (*os.File, error) {
	d, err := openFolder(s.path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer d.close()
	f, err := d.openWith(expertsFile, flag)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	old, err := s.experts.Stat()
	info, err2 := f.Stat()
	if err = errors.Join(err, err2); err == nil && !os.SameFile(old, info) {
		err = errors.New("another file has taken its place: start again")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("store: %w", d.fault(expertsFile, err))
	}
	return f, nil
}

// Path is the store's folder.
func (s *Store) Path() string { return s.path }

// Size is how many bytes the store's files have together, but for the manifest.
func (s *Store) Size() int64 { return s.layout.bytes() }

// Made fails where the store was not made from f, and says in what they differ.
func (s *Store) Made(f *gguf.File) error {
	m, _, err := draft(f, &program.Plan{}, nil)
	if err == nil {
		err = m.sameFile(s.Manifest)
	}
	if err != nil {
		return fmt.Errorf("store: %s: made from another GGUF: %w", s.path, err)
	}
	return nil
}

// Close closes the store's files.
func (s *Store) Close() error {
	if err := s.closeFiles(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (s *Store) closeFiles() error {
	return errors.Join(s.dense.file.Close(), s.experts.Close(), s.headers.Close())
}
