package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
)

// npy reads a file as NumPy does: format 1.0, little-endian f32, two dims.
func npy(t testing.TB, path string) (rows, width int, values []float32) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) < 10 || string(data[:8]) != "\x93NUMPY\x01\x00" {
		t.Fatalf("%s: no .npy file of version 1.0", path)
	}
	n := int(binary.LittleEndian.Uint16(data[8:]))
	header, body := string(data[10:10+n]), data[10+n:]
	if (10+n)%64 != 0 || !strings.HasSuffix(header, "\n") {
		t.Errorf("%s: have a header of %d bytes that ends in %q, want a multiple of 64 with a newline", path, 10+n, header[n-1:])
	}
	if _, err := fmt.Sscanf(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", &rows, &width); err != nil {
		t.Fatalf("%s: header %q: %v", path, header, err)
	}
	if len(body) != 4*rows*width {
		t.Fatalf("%s: have %d bytes, want %d x %d numbers", path, len(body), rows, width)
	}
	for ; len(body) > 0; body = body[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(body)))
	}
	return rows, width, values
}

func TestDumpFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := newDump(filepath.Join(dir, "new", "er")); err != nil {
		t.Errorf("a new folder: %v", err)
	}
	if _, err := newDump(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a folder with something in it: have error %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := newDump(file); err == nil {
		t.Error("a file is taken for a folder")
	}
}

// Names from ids and labels stay within the folder and are what any file system takes.
func TestDumpNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"../../etc/passwd": ".._.._etc_passwd", `a\b:c*"?`: "a_b_c___", "blk.3.attn_q+attn_k": "blk.3.attn_q+attn_k", "ä\x00\n": "___",
		strings.Repeat("x", 999): strings.Repeat("x", 100), "": "",
	} {
		if have := fileName(text); have != want {
			t.Errorf("%q: have %q, want %q", text, have, want)
		}
	}
	d, err := newDump(filepath.Join(t.TempDir(), "d"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0001.text1", "0002.7", "0003", "0004", "0005..._up"} {
		d.begin([]byte([]string{`"text1"`, `7`, `null`, ``, `"../up"`}[i]))
		if d.folder != want {
			t.Errorf("line %d: have folder %q, want %q", i, d.folder, want)
		}
	}
}

// A dump ends at its limit; a second wave's value replaces the first one's.
func TestDumpTake(t *testing.T) {
	t.Parallel()
	d, err := newDump(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d.most = 3 * (128 + 6*4)
	d.begin(nil)
	v := &engine.Traced{Label: "blk.1/x", Name: "y", Number: 12, Layer: 1, Pos: 4, Tokens: 3, Rows: 3, Width: 2, Data: []float32{1, 2, 3, 4, 5, 6}}
	for i := range 3 {
		v.Data[0] = float32(i)
		if err := d.take(v); err != nil {
			t.Fatal(err)
		}
	}
	rows, width, values := npy(t, filepath.Join(d.dir, "0001", "00004-00006", "0012.blk.1_x.y.result1.npy"))
	if rows != 3 || width != 2 || values[0] != 2 || values[5] != 6 {
		t.Errorf("have %d x %d: %v", rows, width, values)
	}
	if err := d.take(v); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("past the limit: have error %v", err)
	}
}

// TestEvalDump: every step of every line, the results of blocks as golden, and the same answers as without.
func TestEvalDump(t *testing.T) {
	t.Parallel()
	needGPU(t)
	refs, err := readRefs(tinyRefs, []string{"text5"})
	if err != nil {
		t.Fatal(err)
	}
	c, dir := refs.Cases[0], filepath.Join(t.TempDir(), "dump")
	in := fmt.Sprintf(`{"id":"a/b","tokens":%s,"greedy":2}`+"\n", strings.ReplaceAll(fmt.Sprint(c.Tokens), " ", ","))
	in += `{"id":2,"tokens":[1,2,3,4,5]}` + "\n" + `{"tokens":[]}` + "\n"
	plain := runHost(t, in, "eval", "--model", tiny, "--kv", "f32", "--chunk", "6")
	dumped := runHost(t, in, "eval", "--model", tiny, "--kv", "f32", "--chunk", "6", "--dump", dir)
	if plain.stdout != dumped.stdout || plain.code != dumped.code {
		t.Errorf("have code %d, output\n%s\nerrors %s\nwant as without a dump:\n%s", dumped.code, dumped.stdout, dumped.stderr, plain.stdout)
	}
	steps, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range steps {
		names = append(names, strings.TrimPrefix(s, dir+string(filepath.Separator)))
	}
	if have, want := fmt.Sprint(names), fmt.Sprint([]string{"0001.a_b/00000-00005", "0001.a_b/00006-00011", "0001.a_b/00012-00012", "0002.2/00000-00004"}); filepath.ToSlash(have) != want {
		t.Fatalf("have steps %s, want %s", have, want)
	}
	for _, want := range c.Layers {
		found, err := filepath.Glob(filepath.Join(steps[1], fmt.Sprintf("*.result%d.npy", want.Layer)))
		if err != nil || len(found) != 1 {
			t.Fatalf("layer %d: have results %v (%v), want one", want.Layer, found, err)
		}
		rows, width, values := npy(t, found[0])
		if rows != 6 || width != 256 {
			t.Fatalf("layer %d: have %d x %d, want 6 x 256", want.Layer, rows, width)
		}
		for i, v := range want.First8 {
			if have := values[5*width+i]; math.Abs(float64(have)-v) > 1e-3 {
				t.Errorf("layer %d, value %d: have %v, want %v", want.Layer, i, have, v)
			}
		}
	}
	again := runHost(t, in, "eval", "--model", tiny, "--dump", dir)
	again.fails(t, "--dump: "+dir+" is not empty")
	checkInputs(t, steps[3])
}

// checkInputs: a step's input and its tokens' logits are there.
func checkInputs(t *testing.T, step string) {
	t.Helper()
	rows, width, input := npy(t, filepath.Join(step, "0000.input.x.npy"))
	if rows != 5 || width != 256 || input[0] == 0 {
		t.Errorf("input: have %d x %d from %v on, want 5 x 256", rows, width, input[0])
	}
	logits, err := filepath.Glob(filepath.Join(step, "*.token_embd.y.npy"))
	if err != nil || len(logits) != 1 {
		t.Fatalf("have logits %v (%v), want one file", logits, err)
	}
	if rows, width, _ := npy(t, logits[0]); rows != 5 || width != 4096 {
		t.Errorf("logits: have %d x %d, want 5 x 4096", rows, width)
	}
}
