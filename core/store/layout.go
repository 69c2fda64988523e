package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/sdk/ggml"
	"github.com/sluicehost/sluice/sdk/program"
)

const (
	// align is the multiple of which a tensor's and a record's offset in its file
	// is, in bytes: that of a disk's sectors and a page, for unbuffered reads.
	align = 4096
	// blockBytes is how much of the file of dense tensors one checksum covers. A
	// row of an embedding is read with its whole block.
	blockBytes = 64 << 10
	// maxFile bounds a file's size, so that no sum of sizes overflows.
	maxFile = 1 << 62
)

// layout is where everything of a store lies. Its checksums are numbered: first
// those of the blocks of the file of dense tensors, then those of the records in
// the order of their file.
type layout struct {
	tensors []stored
	dense   int64 // bytes of dense.bin
	blocks  int
	layers  []layerAt
	experts int64 // bytes of experts.bin
	sums    int   // checksums in all
	headers int64 // bytes of headers.bin
}

// stored is a dense tensor and its place in dense.bin.
type stored struct {
	gguf.Tensor
	at int64
}

// layerAt is the records of a layer in experts.bin.
type layerAt struct {
	*Layer
	at    int64 // of expert 0
	slot  int64 // from one record to the next: the stride, and zeros up to align
	first int   // checksum of expert 0
}

// layout lays a store out, but for its dense tensors' places.
func (m *Manifest) layout() (*layout, error) {
	l := &layout{dense: m.DenseBytes, blocks: int((m.DenseBytes + blockBytes - 1) / blockBytes)}
	for _, p := range m.Parts {
		l.headers += p.Header
	}
	l.sums = l.blocks
	for i := range m.Records {
		r := &m.Records[i]
		at := layerAt{Layer: r, at: l.experts, slot: int64(roundUp(uint64(r.Stride), align)), first: l.sums}
		if l.sums += r.Experts; l.sums > maxSums || at.slot > (maxFile-l.experts)/int64(r.Experts) {
			return nil, fmt.Errorf("layer %d: have more records than a file can hold", r.Layer)
		}
		l.experts += at.slot * int64(r.Experts)
		l.layers = append(l.layers, at)
	}
	return l, nil
}

// layoutOf lays a store out. It fails where the manifest is not of that file.
func layoutOf(m *Manifest, f *gguf.File) (*layout, error) {
	l, err := m.layout()
	if err != nil {
		return nil, err
	}
	var dense int64
	l.tensors, dense, err = placeDense(f, m.Dense)
	if err == nil && dense != m.DenseBytes {
		err = fmt.Errorf("have %d bytes of dense tensors, want %d", dense, m.DenseBytes)
	}
	return l, err
}

// placeDense lays tensors out in their file, one after the other.
func placeDense(f *gguf.File, names []string) (out []stored, size int64, err error) {
	last := int64(0)
	for _, name := range names {
		t, ok := f.Tensor(name)
		if !ok || t.Offset < last {
			return nil, 0, fmt.Errorf("tensor %.80q: want the GGUF's, each once at most and in its order", name)
		}
		if size > maxFile-2*align-t.Size {
			return nil, 0, fmt.Errorf("tensor %s: have more dense tensors than a file can hold", name)
		}
		out = append(out, stored{t, size})
		last = t.Offset + t.Size
		size += int64(roundUp(uint64(t.Size), align))
	}
	return out, size, nil
}

// bytes is the size of the store's files together, but for the manifest.
func (l *layout) bytes() int64 { return l.headers + l.dense + l.experts + 4*int64(l.sums) }

// end is how many bytes of both data files the first n checksums cover.
func (l *layout) end(n int) (dense, experts int64) {
	dense = min(int64(n)*blockBytes, l.dense)
	for _, x := range l.layers {
		if k := min(n-x.first, x.Experts); k > 0 {
			experts = x.at + int64(k)*x.slot
		}
	}
	return dense, experts
}

// blockTensors are the names of the tensors in a block of dense.bin, for people.
func (l *layout) blockTensors(block int) string {
	from, to := int64(block)*blockBytes, int64(block+1)*blockBytes
	var names []string
	for _, t := range l.tensors {
		if t.at < to && t.at+t.Size > from {
			names = append(names, t.Name)
		}
	}
	switch n := len(names); {
	case n == 0:
		return "padding"
	case n > 3:
		return fmt.Sprintf("tensors %s to %s", names[0], names[n-1])
	case n > 1:
		return "tensors " + strings.Join(names, ", ")
	}
	return "tensor " + names[0]
}

// draft is a file's manifest, but for the checksums, and its parts' headers, one
// after the other.
func draft(f *gguf.File, p *program.Plan, records []*program.PlacedRecord) (*Manifest, []byte, error) {
	m := &Manifest{Table: tableSum(f), Dense: denseTensors(f, p), Records: []Layer{}}
	if v, ok := f.Metadata.Value("general.architecture"); ok {
		m.Architecture, _ = v.(string)
	}
	var err error
	if _, m.DenseBytes, err = placeDense(f, m.Dense); err != nil {
		return nil, nil, err
	}
	var headers []byte
	for i := range f.Parts {
		part := &f.Parts[i]
		header, err := readHeader(f, part)
		if err != nil {
			return nil, nil, err
		}
		sum := sha256.Sum256(header)
		m.Parts = append(m.Parts, Part{Name: baseName(part.Name), Size: part.Size, Header: part.HeaderSize, SHA256: hex.EncodeToString(sum[:])})
		headers = append(headers, header...)
	}
	for i, r := range records {
		m.Records = append(m.Records, layerOf(p.GetRecords()[i], r, int(p.GetModel().GetExperts())))
	}
	return m, headers, nil
}

// readHeader is a part's bytes up to the end of its tensor table.
func readHeader(f *gguf.File, p *gguf.Part) ([]byte, error) {
	header := make([]byte, p.HeaderSize)
	if n, err := f.ReadAt(header, p.Offset); n < len(header) {
		return nil, fmt.Errorf("%s: header: have %d of %d bytes: %w", p.Name, n, len(header), err)
	}
	return header, nil
}

// tableSum is the SHA-256 of the tensor table: a line for each tensor, of name,
// type, dims, offset in the address space and size.
func tableSum(f *gguf.File) string {
	h := sha256.New()
	for _, t := range f.Tensors {
		fmt.Fprintf(h, "%s %d %d %d %d\n", t.Name, uint32(t.Type), t.Dims, t.Offset, t.Size)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// denseTensors are the tensors that a plan names beside its records', in the
// order of the file.
func denseTensors(f *gguf.File, p *program.Plan) []string {
	want := map[string]bool{p.GetEmbed().GetTensor(): true}
	for _, w := range p.GetWeights() {
		for _, name := range w.GetTensors() {
			want[name] = true
		}
	}
	for _, r := range p.GetRopes() {
		want[r.GetDivisor()] = true
	}
	names := []string{}
	for _, t := range f.Tensors {
		if want[t.Name] {
			names = append(names, t.Name)
		}
	}
	return names
}

// layerOf is how a placed record is laid out.
func layerOf(r *program.Record, p *program.PlacedRecord, experts int) Layer {
	l := Layer{Layer: int(r.GetLayer()), Experts: experts, Stride: int64(p.GetStride())}
	for i, w := range p.GetParts() {
		part := RecordPart{Tensors: r.GetParts()[i].GetTensors(), Cols: w.GetCols()}
		for _, b := range w.GetBands() {
			part.Bands = append(part.Bands, RecordBand{Type: ggml.Type(b.GetType()).String(), Rows: b.GetRows(), Bytes: b.GetBytes(), Planes: b.GetPlanes()})
		}
		l.Parts = append(l.Parts, part)
	}
	return l
}

// baseName is what follows the last folder of a path or URL.
func baseName(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }

// bounded reads at most limit bytes.
func bounded(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("have more than %d bytes", limit)
	}
	return data, err
}
