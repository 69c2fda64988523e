package store

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is a journal with frames of checksums, and the manifest that it speaks of.
func sample(t testing.TB) (data []byte, frames []int, sums []uint32) {
	t.Helper()
	head, err := json.Marshal(&journalHead{Version: Version, Validators: []string{"etag x"}, Manifest: sampleManifest()})
	if err != nil {
		t.Fatal(err)
	}
	data = frame(head)
	frames = append(frames, len(data))
	for i := range uint32(5) {
		part := []uint32{i, i * i, 7 * i}[:1+i%3]
		sums = append(sums, part...)
		data = append(data, frame(encodeSums(part))...)
		frames = append(frames, len(data))
	}
	return data, frames, sums
}

func sampleManifest() *Manifest {
	sum := strings.Repeat("0a", 32)
	return &Manifest{Architecture: "test", Parts: []Part{{"m.gguf", 9000, 200, sum}}, Table: sum, Dense: []string{"a", "b"}, DenseBytes: 8192,
		Records:   []Layer{{2, 4, 300, []RecordPart{{[]string{"up"}, 64, []RecordBand{{"Q4_0", 8, 288, []uint32{0, 16}}}}}}},
		Checksums: sum}
}

// A journal that was cut anywhere, as by a power failure, says what its whole
// frames say, and no more.
func TestCutJournal(t *testing.T) {
	data, frames, sums := sample(t)
	for n := range len(data) + 1 {
		head, have, err := parseJournal(data[:n])
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if (head != nil) != (n >= frames[0]) {
			t.Fatalf("%d bytes: have head %v", n, head)
		}
		want := 0
		for i := range frames[1:] {
			if n >= frames[i+1] {
				want += 1 + i%3
			}
		}
		if !slices.Equal(have, sums[:want]) {
			t.Fatalf("%d bytes: have %v, want %v", n, have, sums[:want])
		}
	}
}

// A flipped bit takes its frame and those after it away.
func TestFlippedJournal(t *testing.T) {
	data, frames, sums := sample(t)
	for at := range data {
		for bit := range 8 {
			bad := slices.Clone(data)
			bad[at] ^= 1 << bit
			head, have, err := parseJournal(bad)
			if err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
			if at < frames[0] && head != nil || len(have) > len(sums)-1 || !slices.Equal(have, sums[:len(have)]) {
				t.Fatalf("byte %d bit %d: have %v, %v", at, bit, head, have)
			}
		}
	}
}

func TestBadJournal(t *testing.T) {
	for text, want := range map[string]string{
		"x":                   "not an ingest's journal",
		"{}":                  "have format version 0, want 1",
		`{"sluice_ingest":2}`: "have format version 2, want 1",
		`{"sluice_ingest":1}`: "have no manifest",
		`{"sluice_ingest":1,"manifest":{},"more":1}`: "unknown field",
	} {
		if _, _, err := parseJournal(frame([]byte(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have error %v, want %s", text, err, want)
		}
	}
}

// A manifest comes back as it was, and what no ingest writes is refused.
func TestManifest(t *testing.T) {
	m, err := decodeManifest(sampleManifest().encode())
	if err != nil || m.sameFile(sampleManifest()) != nil || m.sameLayout(sampleManifest()) != nil || m.Checksums != sampleManifest().Checksums || m.Architecture != "test" {
		t.Fatalf("have %+v, %v", m, err)
	}
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   string
	}{
		"no parts": {func(m *Manifest) { m.Parts = nil }, "have 0 parts"},
		"size":     {func(m *Manifest) { m.Parts[0].Size = -1 }, "part 0"},
		"sizes overflow": {func(m *Manifest) {
			m.Parts = []Part{m.Parts[0], m.Parts[0]}
			m.Parts[0].Size, m.Parts[1].Size = 1<<62, 1<<62
		}, "part 1"},
		"header":      {func(m *Manifest) { m.Parts[0].Header = 9001 }, "part 0"},
		"header size": {func(m *Manifest) { m.Parts[0].Size, m.Parts[0].Header = 1<<40, 1<<39 }, "part 0"},
		"headers": {func(m *Manifest) {
			p := Part{"m.gguf", 1 << 40, 200 << 20, m.Table}
			m.Parts = []Part{p, p}
		}, "part 1: have headers of more than"},
		"header sum":   {func(m *Manifest) { m.Parts[0].SHA256 = strings.Repeat("0A", 32) }, "part 0"},
		"table sum":    {func(m *Manifest) { m.Table = "" }, "tensor table"},
		"checksums":    {func(m *Manifest) { m.Checksums = "0a" }, "checksums"},
		"dense":        {func(m *Manifest) { m.DenseBytes = -1 }, "dense"},
		"dense large":  {func(m *Manifest) { m.DenseBytes = 1 << 62 }, "dense"},
		"layer twice":  {func(m *Manifest) { m.Records = append(m.Records, m.Records[0]) }, "layer 2"},
		"layer":        {func(m *Manifest) { m.Records[0].Layer = -1 }, "layer -1"},
		"experts":      {func(m *Manifest) { m.Records[0].Experts = 0 }, "0 experts"},
		"experts many": {func(m *Manifest) { m.Records[0].Experts = 1 << 21 }, "experts"},
		"stride":       {func(m *Manifest) { m.Records[0].Stride = 0 }, "of 0 bytes"},
		"records large": {func(m *Manifest) {
			for i := range 20 {
				m.Records = append(m.Records, Layer{Layer: 10 + i, Experts: 1 << 20, Stride: 1 << 40})
			}
		}, "more records than a file can hold"},
	} {
		t.Run(name, func(t *testing.T) {
			m := sampleManifest()
			c.change(m)
			if _, err := decodeManifest(m.encode()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have error %v, want %s", err, c.want)
			}
		})
	}
}

// A sealed manifest is refused all the same where it is not as an ingest writes it.
func TestManifestForm(t *testing.T) {
	body, err := unseal(sampleManifest().encode())
	if err != nil {
		t.Fatal(err)
	}
	for name, edited := range map[string][]byte{
		"null":           []byte("null"),
		"nothing":        nil,
		"twice":          slices.Concat(body, body),
		"field twice":    bytes.Replace(body, []byte(`"dense_bytes"`), []byte(`"dense_bytes": 1, "dense_bytes"`), 1),
		"list twice":     bytes.Replace(body, []byte(`"dense_bytes"`), []byte(`"dense": ["c"], "dense_bytes"`), 1),
		"other case":     bytes.Replace(body, []byte(`"dense_bytes"`), []byte(`"Dense_Bytes"`), 1),
		"other field":    bytes.Replace(body, []byte(`"dense_bytes"`), []byte(`"more": 1, "dense_bytes"`), 1),
		"null in a list": bytes.Replace(body, []byte(`"a",`), []byte("null,"), 1),
		"spaces":         slices.Concat(bytes.Repeat([]byte(" "), 1<<20), body),
		"deep":           bytes.Repeat([]byte("["), 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decodeManifest(seal(edited)); err == nil || !strings.Contains(err.Error(), "not as it should be") {
				t.Errorf("have error %v", err)
			}
		})
	}
}

// No manifest with a bit flipped is accepted.
func TestFlippedManifest(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	data := sampleManifest().encode()
	for at := range data {
		bad := slices.Clone(data)
		bad[at] ^= 1 << r.IntN(8)
		if _, err := decodeManifest(bad); err == nil {
			t.Errorf("seed %d: byte %d: have no error", seed, at)
		}
	}
	for n := range data {
		if _, err := decodeManifest(data[:n]); err == nil {
			t.Errorf("cut to %d bytes: have no error", n)
		}
	}
}

// FuzzManifest: whatever the frame holds gives an error, or a manifest that can be
// laid out and comes back unchanged.
func FuzzManifest(f *testing.F) {
	body, err := unseal(sampleManifest().encode())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, true)
	f.Add(sampleManifest().encode(), false)
	f.Add([]byte(`{"parts":[{"size":1,"header":1}],"records":null}`), true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			data = seal(data)
		}
		m, err := decodeManifest(data)
		if err != nil {
			return
		}
		l, err := m.layout()
		if err != nil || l.headers < 1 || l.dense < 0 || l.experts < 0 || l.bytes() < 0 || l.sums < l.blocks {
			t.Fatalf("have layout %+v, %v", l, err)
		}
		for _, n := range []int{0, 1, l.blocks, l.sums} {
			if dense, experts := l.end(n); dense < 0 || dense > l.dense || experts < 0 || experts > l.experts {
				t.Fatalf("have an end at %d, %d for %d checksums", dense, experts, n)
			}
		}
		again, err := decodeManifest(m.encode())
		if err != nil || again.sameFile(m) != nil || again.sameLayout(m) != nil {
			t.Fatalf("have %+v, %v after %+v", again, err, m)
		}
	})
}

// FuzzJournal: whatever the bytes, no more checksums than there are bytes for.
func FuzzJournal(f *testing.F) {
	data, _, _ := sample(f)
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add(frame([]byte(`{"sluice_ingest":1,"manifest":{}}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		head, sums, err := parseJournal(data)
		if err != nil {
			return
		}
		if 4*len(sums) > len(data) || head == nil && len(sums) > 0 {
			t.Fatalf("have %d checksums of %d bytes", len(sums), len(data))
		}
		if head != nil {
			_ = head.Manifest.check()
		}
	})
}
