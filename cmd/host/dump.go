package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicehost/sluice/core/engine"
)

// maxDump bounds what one run dumps, in bytes: a long prompt of a large model would fill a disk.
const maxDump = 4 << 30

// dump writes every value of every step as a file of NumPy's, for finding where two runs part:
//
//	DIR/0001.ID/00000-00255/0017.blk.3.attn_q.y.npy
//
// is what dispatch 17 of the step over positions 0 to 255 of the first line wrote to its kernel's variable y.
type dump struct {
	dir     string
	line    int    // lines begun
	folder  string // of the line at hand; empty: nothing is dumped
	step    string // folder of the step at hand, once it is made
	written uint64
	most    uint64
}

// newDump makes the folder, or takes an empty one.
func newDump(dir string) (*dump, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("--dump: %s is not empty: want a new folder or an empty one", dir)
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return nil, fmt.Errorf("--dump: %w", err)
	}
	return &dump{dir: dir, most: maxDump}, nil
}

// trace is the dump as the engine calls it; nil for none.
func (d *dump) trace() *engine.Trace {
	if d == nil {
		return nil
	}
	return &engine.Trace{Wants: func(*engine.Traced) bool { return d.folder != "" }, Take: d.take}
}

// begin starts a line's folder, named by the line's number and id.
func (d *dump) begin(id json.RawMessage) {
	if d == nil {
		return
	}
	var text string
	if json.Unmarshal(id, &text) != nil {
		text = string(id) // a number, say
	}
	d.line++
	d.folder, d.step = fmt.Sprintf("%04d", d.line), ""
	if text != "" && text != "null" {
		d.folder += "." + fileName(text)
	}
}

// take writes a value. A wave of experts writes over what the one before it has left: the last has all rows.
func (d *dump) take(v *engine.Traced) error {
	header := npyHeader(v.Rows, v.Width)
	n := uint64(len(header) + 4*len(v.Data))
	if n > d.most-d.written {
		return fmt.Errorf("--dump: have %s written, want at most %s: give fewer or shorter lines", size(d.written), size(d.most))
	}
	d.written += n
	step := filepath.Join(d.dir, d.folder, fmt.Sprintf("%05d-%05d", v.Pos, v.Pos+v.Tokens-1))
	if step != d.step {
		if err := os.MkdirAll(step, 0o777); err != nil {
			return fmt.Errorf("--dump: %w", err)
		}
		d.step = step
	}
	data := append(make([]byte, 0, n), header...)
	for _, x := range v.Data {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	if err := os.WriteFile(filepath.Join(step, dumpName(v)), data, 0o666); err != nil {
		return fmt.Errorf("--dump: %w", err)
	}
	return nil
}

// dumpName names a value's file. A block's result says whose it is.
func dumpName(v *engine.Traced) string {
	name := fmt.Sprintf("%04d.%s.%s", v.Number, fileName(v.Label), fileName(v.Name))
	if v.Layer >= 0 {
		name += fmt.Sprintf(".result%d", v.Layer)
	}
	return name + ".npy"
}

// fileName makes a name that any file system takes of a text from elsewhere.
func fileName(text string) string {
	const most = 100
	var b strings.Builder
	for _, r := range text {
		switch {
		case b.Len() == most:
			return b.String()
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-+_.", r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// npyHeader starts a file of rows x width little-endian f32: NumPy's format 1.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
func npyHeader(rows, width int) []byte {
	const align, prefix = 64, 10
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, width)
	dict += strings.Repeat(" ", align-1-(prefix+len(dict))%align) + "\n"
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	return append(head, dict...)
}
