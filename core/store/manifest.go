package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Version is the version of the packed store's format (docs/store-format.md). It
// goes up with every change of a file, a field or a GPU form of sdk/ggml.
const Version = 1

// Manifest says what a packed store holds. It is the last file that an ingest
// writes, so where there is one, all it speaks of is there. It names no file:
// the names are fixed.
type Manifest struct {
	// Architecture is the GGUF's general.architecture.
	Architecture string `json:"architecture"`
	// Parts are the files of the GGUF.
	Parts []Part `json:"parts"`
	// Table is the SHA-256 of the tensor table, hexadecimal.
	Table string `json:"table_sha256"`
	// Dense names the tensors that are stored as they are, in the GGUF's order.
	Dense []string `json:"dense"`
	// DenseBytes is how many bytes they take in their file.
	DenseBytes int64 `json:"dense_bytes"`
	// Records are the layers that have experts, in the plan's order.
	Records []Layer `json:"records"`
	// Checksums is the SHA-256 of the file of checksums, hexadecimal.
	Checksums string `json:"checksums_sha256"`
}

// Part is a file of the GGUF that a store was made from.
type Part struct {
	Name   string `json:"name"`          // without folders; for people only
	Size   int64  `json:"size"`          // bytes
	Header int64  `json:"header"`        // bytes up to the end of the tensor table
	SHA256 string `json:"header_sha256"` // of these, hexadecimal
}

// Layer is how the expert records of a layer are laid out.
type Layer struct {
	Layer   int          `json:"layer"`
	Experts int          `json:"experts"`
	Stride  int64        `json:"stride"` // bytes of a record
	Parts   []RecordPart `json:"parts"`
}

// RecordPart is a part of a record: one expert's slices of tensors, stacked by rows.
type RecordPart struct {
	Tensors []string     `json:"tensors"`
	Cols    uint64       `json:"cols"`
	Bands   []RecordBand `json:"bands"`
}

// RecordBand is a band of a part, as sdk/place lays it out.
type RecordBand struct {
	Type   string   `json:"type"`
	Rows   uint64   `json:"rows"`
	Bytes  uint64   `json:"bytes"`
	Planes []uint32 `json:"planes"` // in units of 16 bytes from the record's start
}

// A manifest's file is one JSON object of three fields, written exactly so: no
// bit of it can change unnoticed.
const (
	sealHead   = `{"sluice_store":`
	sealSum    = `,"sha256":"`
	sealBody   = `","manifest":`
	sealEnd    = "}\n"
	maxVersion = 9 // digits
	// maxManifest bounds the file's size; a layer takes a few KiB.
	maxManifest = 64 << 20
)

// errVersion says that a store is of another version of the format.
var errVersion = errors.New("it was made by another version of this program: use that one, or ingest again with --force")

// encode is the manifest's file.
func (m *Manifest) encode() []byte {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic("BUG: store: " + err.Error())
	}
	return seal(body)
}

func seal(body []byte) []byte {
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(sealHead+strconv.Itoa(Version)+sealSum+hex.EncodeToString(sum[:])+sealBody), body, []byte(sealEnd))
}

// isManifest says whether data begins as a manifest of any version does.
func isManifest(data []byte) bool { return bytes.HasPrefix(data, []byte(sealHead)) }

// decodeManifest reads and checks a manifest's file.
func decodeManifest(data []byte) (*Manifest, error) {
	body, err := unseal(data)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("not as it should be: %w", err)
	}
	if !bytes.Equal(m.encode(), data) { // a field twice, say
		return nil, errors.New("not as it should be: have fields twice, more than one value, or other spaces than an ingest writes")
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if !isSum(m.Checksums) {
		return nil, fmt.Errorf("have SHA-256 %.80q of the checksums", m.Checksums)
	}
	return m, nil
}

// unseal checks a manifest's frame and gives what is in it.
func unseal(data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, []byte(sealHead))
	digits, rest, ok2 := bytes.Cut(rest, []byte(sealSum))
	if !ok || !ok2 || len(digits) > maxVersion {
		return nil, errors.New("not a store's manifest, or damaged")
	}
	version, err := strconv.ParseUint(string(digits), 10, 32)
	if err != nil {
		return nil, errors.New("not a store's manifest, or damaged")
	}
	if version != Version {
		return nil, fmt.Errorf("have format version %d, want %d: %w", version, Version, errVersion)
	}
	body, ok := bytes.CutSuffix(rest, []byte(sealEnd))
	const sumBytes = 2*sha256.Size + len(sealBody)
	if !ok || len(body) < sumBytes || !bytes.Equal(seal(body[sumBytes:]), data) {
		return nil, errors.New("its SHA-256 is not that of its contents: it is damaged")
	}
	return body[sumBytes:], nil
}

// Bounds of what a manifest may say, so that no sum of sizes overflows.
const (
	maxParts   = 99999
	maxExperts = 1 << 20
	maxLayers  = 1 << 20
	maxStride  = 1 << 40
	maxHeader  = 256 << 20 // as core/gguf has it for a part; here for all of them
	// maxSums bounds the checksums, which are in memory while a store is open: 4 TiB
	// of dense tensors have as many.
	maxSums = 1 << 26
)

// check fails where a manifest says what no ingest writes. The checksums' own sum
// may be missing, as it is while an ingest is under way.
func (m *Manifest) check() error {
	if n := len(m.Parts); n < 1 || n > maxParts {
		return fmt.Errorf("have %d parts, want 1 to %d", n, maxParts)
	}
	total, headers := int64(0), int64(0)
	for i, p := range m.Parts {
		if p.Size < 1 || p.Header < 1 || p.Header > min(p.Size, maxHeader) || total > math.MaxInt64-p.Size || !isSum(p.SHA256) {
			return fmt.Errorf("part %d: have %d bytes, a header of %d and SHA-256 %.80q", i, p.Size, p.Header, p.SHA256)
		}
		total += p.Size
		if headers += p.Header; headers > maxHeader {
			return fmt.Errorf("part %d: have headers of more than %d bytes up to it", i, maxHeader)
		}
	}
	if len(m.Records) > maxLayers {
		return fmt.Errorf("have %d layers with experts, want at most %d", len(m.Records), maxLayers)
	}
	seen := map[int]bool{}
	for _, l := range m.Records {
		if l.Layer < 0 || l.Experts < 1 || l.Experts > maxExperts || l.Stride < 1 || l.Stride > maxStride || seen[l.Layer] {
			return fmt.Errorf("layer %d: have %d experts of %d bytes, want each layer once, 1 to %d experts of 1 to %d bytes",
				l.Layer, l.Experts, l.Stride, maxExperts, int64(maxStride))
		}
		seen[l.Layer] = true
	}
	if m.DenseBytes < 0 || m.DenseBytes > maxSums*blockBytes {
		return fmt.Errorf("have %d bytes of dense tensors, want at most %d", m.DenseBytes, maxSums*int64(blockBytes))
	}
	if !isSum(m.Table) {
		return fmt.Errorf("have SHA-256 %.80q of the tensor table", m.Table)
	}
	_, err := m.layout()
	return err
}

// isSum says whether s is a SHA-256 as encode writes it.
func isSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == s
}

// sameFile fails where two manifests are not of one GGUF, and says in what they differ.
func (m *Manifest) sameFile(want *Manifest) error {
	if len(m.Parts) != len(want.Parts) {
		return fmt.Errorf("have a GGUF of %d files, want one of %d", len(m.Parts), len(want.Parts))
	}
	for i, p := range m.Parts {
		w := want.Parts[i]
		if p.Size != w.Size {
			return fmt.Errorf("%s: have %d bytes, want %d", p.Name, p.Size, w.Size)
		}
		if p.Header != w.Header || p.SHA256 != w.SHA256 {
			return fmt.Errorf("%s: have another header than %s", p.Name, w.Name)
		}
	}
	if m.Table != want.Table {
		return errors.New("have another tensor table")
	}
	return nil
}

// sameLayout fails where two manifests of one GGUF lay it out differently.
func (m *Manifest) sameLayout(want *Manifest) error {
	if !slices.Equal(m.Dense, want.Dense) {
		return fmt.Errorf("have %d tensors beside the experts, want %d or others", len(m.Dense), len(want.Dense))
	}
	if len(m.Records) != len(want.Records) {
		return fmt.Errorf("have %d layers with experts, want %d", len(m.Records), len(want.Records))
	}
	for i := range m.Records {
		if err := m.Records[i].same(&want.Records[i]); err != nil {
			return err
		}
	}
	return nil
}

// same fails where a layer's records are laid out in another way.
func (l *Layer) same(want *Layer) error {
	if l.Layer != want.Layer || l.Experts != want.Experts || l.Stride != want.Stride {
		return fmt.Errorf("have %d records of %d bytes for layer %d, want %d of %d bytes for layer %d",
			l.Experts, l.Stride, l.Layer, want.Experts, want.Stride, want.Layer)
	}
	parts := slices.EqualFunc(l.Parts, want.Parts, func(a, b RecordPart) bool {
		return slices.Equal(a.Tensors, b.Tensors) && a.Cols == b.Cols && slices.EqualFunc(a.Bands, b.Bands, func(a, b RecordBand) bool {
			return a.Type == b.Type && a.Rows == b.Rows && a.Bytes == b.Bytes && slices.Equal(a.Planes, b.Planes)
		})
	})
	if !parts {
		return fmt.Errorf("layer %d: the records have other parts", l.Layer)
	}
	return nil
}
