package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

// Ingest is a packed store that is to be made of a GGUF.
type Ingest struct {
	source   *GGUF
	manifest *Manifest // without the checksums
	headers  []byte
	layout   *layout
}

// IngestOptions say how a store is made.
type IngestOptions struct {
	// Force begins anew, whatever store is in the folder.
	Force bool
	// Validators are what changes when a part of the GGUF does, one for each part:
	// a word for its kind and a value, as in "etag ...". An ingest that was broken
	// off goes on only where each is the same as before; those that are empty, or
	// of another kind than before, are not compared.
	Validators []string
	// Unchanged, where not nil, is called when all has been read: an error of its
	// own says that the GGUF has changed meanwhile, and no store is made.
	Unchanged func() error
	// Progress, where not nil, is told how many bytes of the store are written, of
	// how many. It is not called from two goroutines at once.
	Progress func(done, total uint64)

	fault func(file string, off int64) error // of a write, in tests
}

// Ingested says what Run did.
type Ingested struct {
	Dir     string
	Size    int64 // bytes of the store
	Resumed int64 // bytes that were there already
	Already bool  // the store was there and whole
}

// maxRecord bounds an expert's record, in bytes: no device has larger bindings.
const maxRecord = 4 << 30

// NewIngest reads the headers of f, whose plan p is, and lays a store out. It
// writes nothing. f remains the caller's, and open until Run has returned.
func NewIngest(f *gguf.File, p *program.Plan) (*Ingest, error) {
	h := Header(f)
	weights, err := place.Weights(h, p, 0)
	if err != nil {
		return nil, err
	}
	records, err := place.Records(h, p, maxRecord)
	if err != nil {
		return nil, err
	}
	in := &Ingest{}
	if in.source, err = NewGGUF(f, p, weights, records); err != nil {
		return nil, err
	}
	if in.manifest, in.headers, err = draft(f, p, records); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err = in.manifest.check(); err == nil {
		in.layout, err = layoutOf(in.manifest, f)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", f.Parts[0].Name, err)
	}
	return in, nil
}

// Name is a good name for the store's folder: that of the GGUF's first file with
// what can't be in a file name left out, and twelve digits that are the same for
// the same GGUF only.
func (in *Ingest) Name() string {
	h := sha256.New()
	for _, p := range in.manifest.Parts {
		fmt.Fprintf(h, "%d %s\n", p.Size, p.SHA256)
	}
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, in.manifest.Title())
	if name = strings.TrimLeft(name, ".-"); name == "" {
		name = "store"
	}
	return fmt.Sprintf("%.80s-%s", name, hex.EncodeToString(h.Sum(nil))[:12])
}

// Title is the name of the GGUF's first file without what all such names have.
func (m *Manifest) Title() string {
	name := m.Parts[0].Name
	if all, err := gguf.SplitNames(name); err == nil && len(all) > 1 {
		name = name[:len(name)-len("-00001-of-00001.gguf")]
	}
	return strings.TrimSuffix(name, ".gguf")
}

// Size is how many bytes of disk the store will take.
func (in *Ingest) Size() int64 { return in.layout.bytes() }

// Run makes the store in the folder dir, which it makes if need be. An ingest that
// ended early, by whatever reason, goes on where the last checkpoint was when Run
// is called again; the store is the same in the end, byte for byte. Until then it
// has no manifest, so that it can't be opened. Run fails, with nothing lost,
// where another process writes the store, where the folder has files of another
// kind or the store of another GGUF, and where the disk is too small.
func (in *Ingest) Run(ctx context.Context, dir string, o IngestOptions) (Ingested, error) {
	done, err := in.run(ctx, dir, o)
	if err != nil {
		err = fmt.Errorf("store: %w", err)
	}
	return done, err
}

func (in *Ingest) run(ctx context.Context, dir string, o IngestOptions) (Ingested, error) {
	result := Ingested{Dir: dir, Size: in.Size()}
	d, err := makeFolder(dir)
	if err != nil {
		return result, err
	}
	defer d.close()
	unlock, err := d.lock()
	if err != nil {
		return result, err
	}
	defer unlock()
	if o.Force {
		// What is there goes only if its room and the free one are enough.
		if err = enoughSpace(dir, in.Size()-d.bytes()); err == nil {
			err = d.clear()
		}
	} else {
		result.Already, err = in.finished(d)
	}
	if err != nil || result.Already {
		return result, errors.Join(err, d.clearTemps())
	}
	sums, err := in.resume(d, o.Validators)
	if err != nil {
		return result, err
	}
	dense, experts := in.layout.end(len(sums))
	result.Resumed = dense + experts
	haveDense, haveExperts := in.sizes(d)
	if err := enoughSpace(dir, in.Size()-haveDense-haveExperts); err != nil {
		return result, err
	}
	return result, in.write(ctx, d, sums, o)
}

// finished says whether the folder has this very store already. Another one is an
// error.
func (in *Ingest) finished(d *folder) (bool, error) {
	if _, err := d.root.Lstat(manifestFile); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	s, err := openStore(d)
	if err != nil {
		return false, advised(err)
	}
	defer s.closeFiles()
	if err := in.manifest.sameFile(s.Manifest); err != nil {
		return false, fmt.Errorf("%s: a store of another GGUF: %w: give another folder, or --force to replace it", d.path, err)
	}
	if err := in.manifest.sameLayout(s.Manifest); err != nil {
		return false, fmt.Errorf("%s: made with another version of the plugin: %w: --force replaces it", d.path, err)
	}
	return true, d.remove(journalFile) // a kill after the manifest's writing leaves it behind
}

// resume returns the checksums of what an earlier ingest of the same GGUF has put
// on disk for good.
func (in *Ingest) resume(d *folder, validators []string) ([]uint32, error) {
	head, sums, err := d.readJournal()
	if head == nil || err != nil {
		return nil, err
	}
	const anew = "begin anew with --force"
	if err := in.manifest.sameFile(head.Manifest); err != nil {
		return nil, fmt.Errorf("%s: the ingest that was begun here is of another GGUF: %w: %s", d.path, err, anew)
	}
	for i, v := range validators {
		if i < len(head.Validators) && differ(v, head.Validators[i]) {
			return nil, fmt.Errorf("%s: %s has changed since the ingest was begun: have %.80s, want %.80s: %s",
				d.path, in.manifest.Parts[i].Name, v, head.Validators[i], anew)
		}
	}
	if err := in.manifest.sameLayout(head.Manifest); err != nil {
		return nil, fmt.Errorf("%s: the ingest was begun with another version of the plugin: %w: %s", d.path, err, anew)
	}
	return sums[:in.present(d, len(sums))], nil
}

// differ says whether two validators of one kind are not the same.
func differ(a, b string) bool {
	kindA, _, _ := strings.Cut(a, " ")
	kindB, _, _ := strings.Cut(b, " ")
	return a != "" && kindA == kindB && a != b
}

// present is how many of the first n checksums have all their data in the files.
// It is n, unless someone has cut or removed a file since.
func (in *Ingest) present(d *folder, n int) int {
	haveDense, haveExperts := in.sizes(d)
	n = min(n, in.layout.sums)
	for n > 0 {
		if dense, experts := in.layout.end(n); dense <= haveDense && experts <= haveExperts {
			break
		}
		n /= 2 // rare enough not to be exact
	}
	return n
}

// sizes are how many bytes of both data files are on disk, as far as they are
// needed.
func (in *Ingest) sizes(d *folder) (dense, experts int64) {
	size := func(name string, most int64) int64 {
		info, err := d.root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		return min(info.Size(), most)
	}
	return size(denseFile, in.layout.dense), size(expertsFile, in.layout.experts)
}

// enoughSpace fails where the disk has no room for so many bytes more.
func enoughSpace(dir string, need int64) error {
	need += 1 << 20 // for the manifest, the journal and what the file system keeps of them
	free, known := freeSpace(dir)
	if !known || free >= need {
		return nil
	}
	return fmt.Errorf("%s: have %s free on this disk, want %s: make room, or give a folder on another disk",
		dir, humanize.BytesN(uint64(free), 3), humanize.BytesN(uint64(need), 3))
}

// finish writes what comes last: the checksums, and the manifest that says that
// all is there.
func (in *Ingest) finish(d *folder, sums []uint32) error {
	data := encodeSums(sums)
	if err := d.replace(checksumsFile, data); err != nil {
		return err
	}
	m := *in.manifest
	sum := sha256.Sum256(data)
	m.Checksums = hex.EncodeToString(sum[:])
	m.Parts = slices.Clone(m.Parts)
	if err := d.replace(manifestFile, m.encode()); err != nil {
		return err
	}
	return errors.Join(d.remove(journalFile), d.sync())
}
