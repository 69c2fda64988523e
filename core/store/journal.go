package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// The journal of an ingest says how far it got. It is a row of frames: the length
// of the contents (4 bytes, little-endian), their CRC-32C (4 bytes), the contents.
// The first frame is a journalHead as JSON; each other one is checksums, 4 bytes
// each, that follow on those of the frame before. A frame is written after the
// data that its checksums cover are on disk. Frames from the first one on that is
// cut off or damaged were being written when the process or the machine stopped,
// and count for nothing.
const (
	frameHead = 8
	// maxJournal bounds what is read of a journal: a frame for each checksum, and its head.
	maxJournal = maxSums*(frameHead+4) + maxManifest
)

// journalHead says what is being ingested.
type journalHead struct {
	Version    int       `json:"sluice_ingest"`
	Validators []string  `json:"validators"` // see IngestOptions
	Manifest   *Manifest `json:"manifest"`   // without the checksums
}

// frame is contents as the journal has them.
func frame(contents []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(contents)))
	out = binary.LittleEndian.AppendUint32(out, checksum(contents))
	return append(out, contents...)
}

// nextFrame splits the first frame's contents off data; false where it is not whole.
func nextFrame(data []byte) (contents, rest []byte, ok bool) {
	if len(data) < frameHead {
		return nil, nil, false
	}
	n, sum := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	if data = data[frameHead:]; uint64(n) > uint64(len(data)) {
		return nil, nil, false
	}
	return data[:n], data[n:], checksum(data[:n]) == sum
}

// parseJournal reads a journal; a nil head is of one that says nothing yet.
func parseJournal(data []byte) (*journalHead, []uint32, error) {
	contents, rest, ok := nextFrame(data)
	if !ok {
		return nil, nil, nil
	}
	var is struct {
		Version int `json:"sluice_ingest"`
	}
	if err := json.Unmarshal(contents, &is); err != nil {
		return nil, nil, fmt.Errorf("not an ingest's journal: %w", err)
	}
	if is.Version != Version {
		return nil, nil, fmt.Errorf("have format version %d, want %d: %w", is.Version, Version, errVersion)
	}
	head := &journalHead{}
	d := json.NewDecoder(bytes.NewReader(contents))
	d.DisallowUnknownFields()
	err := d.Decode(head)
	if err == nil && head.Manifest == nil {
		err = errors.New("have no manifest")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("not an ingest's journal: %w", err)
	}
	var sums []uint32
	for ok {
		if contents, rest, ok = nextFrame(rest); ok {
			sums = append(sums, decodeSums(contents)...)
		}
	}
	return head, sums, nil
}

// readJournal reads the folder's journal; a nil head where there is none yet.
func (d *folder) readJournal() (*journalHead, []uint32, error) {
	data, err := d.read(journalFile, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	head, sums, err := parseJournal(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.file(journalFile), err)
	}
	return head, sums, nil
}

// journal is a journal that is being written.
type journal struct {
	folder *folder
	file   *os.File
}

// newJournal writes a journal that has got so far, and opens it to add to it.
func (d *folder) newJournal(head *journalHead, sums []uint32) (*journal, error) {
	text, err := json.Marshal(head)
	if err != nil {
		panic("BUG: store: " + err.Error())
	}
	if err := d.replace(journalFile, slices.Concat(frame(text), frame(encodeSums(sums)))); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(journalFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, d.fault(journalFile, err)
	}
	return &journal{d, f}, nil
}

// add appends checksums of data that are on disk already.
func (j *journal) add(sums []uint32) error {
	if len(sums) == 0 {
		return nil
	}
	_, err := j.file.Write(frame(encodeSums(sums)))
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return j.folder.fault(journalFile, err)
	}
	return nil
}

func (j *journal) close() { _ = j.file.Close() }
