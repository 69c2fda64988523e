package routing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func header(experts, topK int, layers ...int) *Header {
	h := &Header{Model: "a model", Architecture: "toy", Sum: "ab", Experts: experts, TopK: topK}
	for _, l := range layers {
		h.Layers = append(h.Layers, Layer{Layer: l, RecordBytes: 100, Group: len(h.Layers) % 2})
	}
	return h
}

// ahead lets a header's layers guess up to n layers ahead.
func ahead(h *Header, n int) *Header {
	for i := range h.Layers {
		h.Layers[i].Guesses = min(n, len(h.Layers)-1-i)
	}
	return h
}

// random records steps and returns the file with what is in it.
func random(t testing.TB, rng *rand.Rand, h *Header, steps int) ([]byte, []Step) {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, h)
	if err != nil {
		t.Fatal(err)
	}
	var want []Step
	for pos := range steps {
		s := Step{Decode: rng.IntN(2) == 0, Pos: pos * 1000, Tokens: max(1, rng.IntN(6)-2)}
		guessed := s.Tokens == 1 && rng.IntN(4) > 0
		w.Decoding(s.Decode)
		for _, l := range h.Layers {
			var picks, guesses []int
			if guessed {
				for range l.Guesses * h.TopK {
					p := rng.IntN(h.Experts)
					guesses, s.Guesses = append(guesses, p), append(s.Guesses, uint16(p))
				}
			}
			for range s.Tokens * h.TopK {
				p := rng.IntN(h.Experts)
				picks, s.Picks = append(picks, p), append(s.Picks, uint16(p))
			}
			w.Add(l.Layer, s.Pos, picks, guesses)
		}
		want = append(want, s)
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return file.Bytes(), want
}

func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, h := range []*Header{header(1, 1, 0), header(2, 1, 7), header(32, 4, 2, 3, 4), header(257, 9, 0, 5), header(1<<16, 3, 1, 2),
		ahead(header(100, 3, 1, 2, 5, 7), 2)} {
		file, want := random(t, rng, h, 20)
		have, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(have, &Trace{Header: h, Steps: want}) {
			t.Errorf("%d experts: have %+v, want %+v", h.Experts, have, want)
		}
		if s := have.Steps[3]; !reflect.DeepEqual(s.Layer(len(h.Layers)-1, h.TopK), s.Picks[len(s.Picks)-s.Tokens*h.TopK:]) {
			t.Error("the last layer's picks are not the last picks")
		}
		checkAhead(t, h, have.Steps)
	}
}

// checkAhead checks that the layers' guesses, one after the other, are all guesses.
func checkAhead(t *testing.T, h *Header, steps []Step) {
	t.Helper()
	guessed := 0
	for _, s := range steps {
		var all []uint16
		for i := range h.Layers {
			all = append(all, h.Ahead(&s, i)...)
		}
		if !slices.Equal(all, s.Guesses) {
			t.Errorf("have guesses %v by layer, want %v", all, s.Guesses)
		}
		guessed += len(all)
	}
	if (guessed > 0) != (h.guesses() > 0) {
		t.Errorf("have %d guesses in all of a header with %d", guessed, h.guesses())
	}
}

// TestCut cuts a file everywhere: it is readable up to its last whole step.
func TestCut(t *testing.T) {
	file, want := random(t, rand.New(rand.NewPCG(1, 2)), ahead(header(32, 4, 2, 3), 1), 6)
	whole := map[int]int{} // steps by length of the file
	for n := range len(file) {
		have, err := Read(bytes.NewReader(file[:n]))
		if err != nil {
			if n <= len(magic) || errors.Is(err, ErrCut) {
				continue
			}
			t.Fatalf("%d bytes: %v", n, err)
		}
		if !have.Cut {
			whole[n] = len(have.Steps)
		}
		for i, s := range have.Steps {
			if !reflect.DeepEqual(s, want[i]) {
				t.Fatalf("%d bytes: step %d: have %+v, want %+v", n, i, s, want[i])
			}
		}
	}
	if len(whole) != len(want) {
		t.Errorf("have %v whole prefixes, want %d", whole, len(want))
	}
}

// frame wraps bytes as the format does.
func frame(data string) string {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(data)))
	b = append(b, data...)
	return string(binary.LittleEndian.AppendUint32(b, crc32.Checksum([]byte(data), castagnoli)))
}

// begin is how a file of format 1 begins; begin2 of format 2.
const begin, begin2 = magic + "\x01", magic + "\x02"

const good = `{"model":"m","architecture":"a","experts":4,"top_k":1,"layers":[{"layer":0,"record_bytes":1,"group":0}]}`

func TestRefusals(t *testing.T) {
	edit := func(old, new string) string { return begin + frame(strings.Replace(good, old, new, 1)) }
	twoLayers := strings.Replace(good, `"group":0}`, `"group":0,"guesses":1},{"layer":1,"record_bytes":1,"group":0}`, 1)
	guessing2 := begin2 + frame(twoLayers)
	for name, c := range map[string]struct{ file, want string }{
		"empty":           {"", "no routing trace"},
		"other file":      {"GGUF\x03\x00\x00\x00 and more", "no routing trace"},
		"other version":   {magic + "\x03", "have format 3, want 1 or 2"},
		"no header":       {begin, "header: the file ends"},
		"empty frame":     {begin + frame(good) + frame(""), "step 0: have 0 bytes"},
		"large frame":     {begin + frame(good) + "\xff\xff\xff\xff", "step 0: have 4294967295 bytes"},
		"checksum":        {begin + frame(good) + strings.Replace(frame("\x01\x00\x01\x00"), "\x01\x00\x01", "\x01\x01\x01", 1), "step 0: have checksum"},
		"unknown field":   {edit(`"model"`, `"modell"`), "unknown field"},
		"no experts":      {edit(`"experts":4`, `"experts":0`), "experts: have 0"},
		"many experts":    {edit(`"experts":4`, `"experts":65537`), "experts: have 65537"},
		"top k":           {edit(`"top_k":1`, `"top_k":5`), "top_k: have 5"},
		"no layers":       {edit(`{"layer":0,"record_bytes":1,"group":0}`, ``), "layers: have 0"},
		"layers":          {edit(`{"layer":0,`, `{"layer":0,"record_bytes":1,"group":0},{"layer":0,`), "have layer 0 after 0"},
		"record":          {edit(`"record_bytes":1`, `"record_bytes":-1`), "record_bytes: have -1"},
		"group":           {edit(`"group":0`, `"group":1`), "group: have 1"},
		"unlike records":  {edit(`{"layer":0,`, `{"layer":0,"record_bytes":2,"group":0},{"layer":1,`), "layer 1: record_bytes: have 1, want 2 as in the other layers of group 0"},
		"second header":   {begin + frame(good+good), "header: have something behind"},
		"stray brace":     {begin + frame(good+"}"), "header: have something behind"},
		"kind":            {begin + frame(good) + frame("\x02\x00\x01\x00"), "have kind 2"},
		"no tokens":       {begin + frame(good) + frame("\x01\x00\x00"), "want 1 to"},
		"position":        {begin + frame(good) + frame("\x01\xff\xff\xff\xff\xff\xff\xff\x01\x01\x00"), "want a position"},
		"few picks":       {begin + frame(good) + frame("\x01\x00\x02"), "have 0 bytes of picks, want 1"},
		"many picks":      {begin + frame(good) + frame("\x01\x00\x01\x00\x00"), "have 2 bytes of picks, want 1"},
		"behind the pick": {begin + frame(good) + frame("\x01\x00\x01\x04"), "want zeros"},
		"guesses in 1":    {edit(`"group":0}`, `"group":0,"guesses":1},{"layer":1,"record_bytes":1,"group":0}`), "header: have 1 guesses in format 1"},
		"none in 2":       {begin2 + frame(good), "header: have 0 guesses in format 2"},
		"guesses":         {edit(`"group":0}`, `"group":0,"guesses":2},{"layer":1,"record_bytes":1,"group":0}`), "layer 0: guesses: have 2, want 0 to 1"},
		"negative":        {edit(`"group":0}`, `"group":0,"guesses":-1}`), "guesses: have -1"},
		"last guesses":    {edit(`"group":0}`, `"group":0,"guesses":1}`), "guesses: have 1, want 0 to 0"},
		"plain kind":      {begin + frame(good) + frame("\x03\x00\x01\x00"), "have kind 3, want 0 to 1"},
		"guessing kind":   {guessing2 + frame("\x04\x00\x01\x00"), "have kind 4, want 0 to 3"},
		"two tokens":      {guessing2 + frame("\x03\x00\x02\x00"), "have guesses of 2 tokens, want 1"},
		"few guesses":     {guessing2 + frame("\x03\x00\x01"), "have 0 bytes of picks, want 1"},
		"behind guesses":  {guessing2 + frame("\x03\x00\x01\x40"), "want zeros"},
		"no such guess":   {begin2 + frame(strings.Replace(twoLayers, `"experts":4`, `"experts":3`, 1)) + frame("\x03\x00\x01\x30"), "have expert 3"},
		"no such expert":  {begin + frame(strings.Replace(good, `"experts":4`, `"experts":3`, 1)) + frame("\x01\x00\x01\x03"), "have expert 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have %v, want %q", err, c.want)
			}
		})
	}
}

func TestWriterErrors(t *testing.T) {
	h := ahead(header(4, 2, 1, 3), 1)
	for name, c := range map[string]struct {
		add  func(w *Writer)
		want string
	}{
		"order":    {func(w *Writer) { w.Add(3, 0, []int{0, 1}, nil) }, "out of turn"},
		"position": {func(w *Writer) { w.Add(1, 0, []int{0, 1}, nil); w.Add(3, 1, []int{0, 1}, nil) }, "one position"},
		"picks":    {func(w *Writer) { w.Add(1, 0, []int{0, 1, 2}, nil) }, "have 3 picks, want 2 for each of 1"},
		"expert":   {func(w *Writer) { w.Add(1, 0, []int{0, 4}, nil) }, "have expert 4"},
		"guess":    {func(w *Writer) { w.Add(1, 0, []int{0, 1}, []int{0, 4}) }, "have expert 4"},
		"guesses":  {func(w *Writer) { w.Add(1, 0, []int{0, 1}, []int{0}) }, "have 1 guesses in a step of 1 tokens, want 2"},
		"tokens":   {func(w *Writer) { w.Add(1, 0, []int{0, 1, 1, 0}, []int{0, 1}) }, "in a step of 2 tokens, want 2 in one of 1"},
		"last":     {func(w *Writer) { w.Add(1, 0, []int{0, 1}, []int{0, 1}); w.Add(3, 0, []int{0, 1}, []int{1, 2}) }, "have 2 guesses in a step of 1 tokens, want 0"},
	} {
		w, err := NewWriter(io.Discard, h)
		if err != nil {
			t.Fatal(err)
		}
		if c.add(w); w.Err() == nil || !strings.Contains(w.Err().Error(), c.want) {
			t.Errorf("%s: have %v, want %q", name, w.Err(), c.want)
		}
	}
	var none *Writer
	none.Decoding(true)
	none.Add(0, 0, nil, nil)
	if none.Err() != nil {
		t.Error("a nil writer fails")
	}
	if _, err := NewWriter(io.Discard, &Header{}); err == nil {
		t.Error("an empty header: have no error")
	}
}

// TestAbandoned: a step that did not end is not in the file.
func TestAbandoned(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, header(4, 2, 1, 3))
	if err != nil {
		t.Fatal(err)
	}
	w.Add(1, 0, []int{0, 1}, nil)
	w.Add(1, 5, []int{2, 3}, nil)
	w.Add(3, 5, []int{1, 0}, nil)
	have, err := Read(&file)
	if err != nil || w.Err() != nil || len(have.Steps) != 1 || have.Steps[0].Pos != 5 {
		t.Errorf("have %+v, %v, %v; want the second step alone", have, err, w.Err())
	}
}

func TestWriterAllocatesNothing(t *testing.T) {
	w, err := NewWriter(io.Discard, ahead(header(32, 4, 0, 1), 1))
	if err != nil {
		t.Fatal(err)
	}
	picks, pos := []int{1, 2, 3, 31}, 0
	if n := testing.AllocsPerRun(100, func() {
		w.Add(0, pos, picks, picks)
		w.Add(1, pos, picks, nil)
		pos++
	}); n != 0 || w.Err() != nil {
		t.Errorf("have %v allocations a step, %v; want none", n, w.Err())
	}
}

// FuzzRead: no file makes the reader panic, and what it reads can be written again.
func FuzzRead(f *testing.F) {
	file, _ := random(f, rand.New(rand.NewPCG(1, 2)), header(32, 4, 2, 3), 3)
	f.Add(file)
	guessed, _ := random(f, rand.New(rand.NewPCG(1, 2)), ahead(header(32, 4, 2, 3, 4), 2), 3)
	f.Add(guessed)
	f.Add(file[:len(file)-3])
	f.Add([]byte(begin + frame(good) + frame("\x01\x00\x01\x03")))
	f.Fuzz(func(t *testing.T, data []byte) {
		have, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Write(&out, have); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&out)
		if have.Cut = false; err != nil || !reflect.DeepEqual(again, have) {
			t.Errorf("have %+v, %v; want %+v", again, err, have)
		}
	})
}
