package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/sdk/program"
)

const tinyRefs = "../../testdata/models/golden/lfm2moe.json"

// refsJSON is a file of golden cases as JSON values, to be changed by tests.
type refsJSON map[string]any

// shortRefs is one case of the tiny model's with a few greedy tokens, and a few texts.
func shortRefs(t testing.TB) refsJSON {
	t.Helper()
	data, err := os.ReadFile(tinyRefs)
	if err != nil {
		t.Fatal(err)
	}
	var r refsJSON
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, c := range r["cases"].([]any) {
		if c := c.(map[string]any); c["name"] == "text2" {
			c["greedy"], c["steps"] = c["greedy"].([]any)[:4], c["steps"].([]any)[:4]
			r["cases"] = []any{c}
		}
	}
	r["tokenize"] = r["tokenize"].([]any)[:5]
	return r
}

// first is the only case.
func (r refsJSON) first() map[string]any { return r["cases"].([]any)[0].(map[string]any) }

// write puts the file in a folder with the logits of text2, changed where change is given.
func (r refsJSON) write(t testing.TB, change func(logits []byte) []byte) string {
	t.Helper()
	const logits = "lfm2moe.text2.f32"
	data, err := os.ReadFile(filepath.Join(filepath.Dir(tinyRefs), logits))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		data = change(data)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{logits: data, "refs.json": text} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "refs.json")
}

// tinyFacts is the tiny model as far as cases are compared with it.
func tinyFacts() *program.Model {
	return &program.Model{Architecture: "lfm2moe", Layers: 8, Hidden: 256, Vocab: 4096, Experts: 32, TopK: 4}
}

// Files that are no golden cases, contradict themselves or are of another model are refused by saying what.
func TestRefsRefused(t *testing.T) {
	t.Parallel()
	in := func(f func(c map[string]any)) func(refsJSON) { return func(r refsJSON) { f(r.first()) } }
	for name, test := range map[string]struct {
		change func(refsJSON)
		logits func([]byte) []byte
		want   string
	}{
		"unchanged":             {change: func(refsJSON) {}},
		"no cases":              {change: func(r refsJSON) { r["cases"], r["tokenize"] = nil, nil }, want: `have neither "cases" nor "tokenize"`},
		"null case":             {change: func(r refsJSON) { r["cases"] = []any{nil, r["cases"].([]any)[0]} }, want: "case 0 is null"},
		"cases of another kind": {change: func(r refsJSON) { r["cases"] = "x" }, want: `not a file of golden cases: field "cases": have a JSON string, want a list`},
		"no tokens":             {change: in(func(c map[string]any) { c["tokens"] = []int{} }), want: `case 0 "text2": have no tokens`},
		"nothing to compare":    {change: func(r refsJSON) { r["cases"] = []any{map[string]any{"tokens": []int{1}}} }, want: `case 0 "": have nothing to compare, want "positions"`},
		"null in a pair":        {change: in(func(c map[string]any) { c["positions"].([]any)[0].(map[string]any)["top"] = [][]any{{nil, nil}} }), want: "want a token id and its logit"},
		"null among tokens":     {change: in(func(c map[string]any) { c["tokens"] = []any{1, nil} }), want: "have null among them"},
		"steps missing":         {change: in(func(c map[string]any) { c["steps"] = c["steps"].([]any)[:1] }), want: "have 1 step and 4 greedy tokens"},
		"step at a position":    {change: in(func(c map[string]any) { c["steps"].([]any)[1].(map[string]any)["pos"] = 9 }), want: "step 1: have position 9, want 3"},
		"position past the end": {change: in(func(c map[string]any) { c["positions"].([]any)[0].(map[string]any)["pos"] = 99 }), want: "positions: have 99, want ascending ones below 3"},
		"positions descend":     {change: in(func(c map[string]any) { c["positions"].([]any)[1].(map[string]any)["pos"] = 0 }), want: "positions: have 0"},
		"a logit alone":         {change: in(func(c map[string]any) { c["positions"].([]any)[0].(map[string]any)["top"] = [][]int{{1}} }), want: "want a token id and its logit"},
		"a token's text":        {change: in(func(c map[string]any) { c["positions"].([]any)[0].(map[string]any)["top"] = [][]any{{"a", 1}} }), want: `cases: not as it should be: have ["a",1], want a token id and its logit`},
		"half a token":          {change: in(func(c map[string]any) { c["positions"].([]any)[0].(map[string]any)["top"] = [][]float64{{1.5, 1}} }), want: "want a token id and its logit"},
		"logits elsewhere":      {change: in(func(c map[string]any) { c["logits_file"] = "../x.f32" }), want: `have "../x.f32", want a file beside the cases`},
		"logits missing":        {change: func(refsJSON) {}, logits: func([]byte) []byte { return nil }, want: "case text2: stat "},
		"logits cut off":        {change: func(refsJSON) {}, logits: func(b []byte) []byte { return b[4:] }, want: "of 16380 bytes, want a file of 16384"},
		"another architecture":  {change: func(r refsJSON) { r["arch"] = "gemma4" }, want: "the cases are of a model of architecture gemma4, this one is lfm2moe"},
		"another width":         {change: func(r refsJSON) { r["dims"].(map[string]any)["H"] = 512 }, want: "dims.H: this model has 256, the cases' 512"},
		"another vocabulary":    {change: in(func(c map[string]any) { c["greedy"].([]any)[0] = 4096 }), want: "have token 4096, want one below this model's vocabulary of 4096"},
		"more layers":           {change: in(func(c map[string]any) { c["layers"].([]any)[7].(map[string]any)["layer"] = 8 }), want: "of layer 8, this model has 8 layers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shortRefs(t)
			test.change(r)
			read, err := readRefs(r.write(t, test.logits), nil)
			if err == nil {
				err = read.about(tinyFacts())
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("have error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := readRefs(os.DevNull, nil); err == nil || !strings.Contains(err.Error(), "special file") {
		t.Errorf("a device: have error %v", err)
	}
	_, err := readRefs(shortRefs(t).write(t, nil), []string{"text9"})
	if err == nil || !strings.Contains(err.Error(), `have no case "text9", want one of text2`) {
		t.Errorf("a name that is none: have error %v", err)
	}
}

// FuzzRefs: whatever the file, an error or cases that can be replayed without a look at their bounds.
func FuzzRefs(f *testing.F) {
	data, err := json.Marshal(shortRefs(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"cases":[{"tokens":[1],"positions":[{"pos":0,"top":[[1,2]]}],"greedy":[1],"steps":[{"pos":0}],"layers":[{"layer":-1}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRefs(data, nil)
		if err != nil || r.about(tinyFacts()) != nil {
			return
		}
		for _, c := range r.Cases {
			if len(c.Tokens) == 0 || len(c.Steps) > len(c.Greedy) {
				t.Errorf("have %+v", c)
			}
			for _, id := range append(c.Tokens, c.Greedy...) {
				if id < 0 || id >= 4096 {
					t.Errorf("have token %d", id)
				}
			}
			for _, l := range c.Layers {
				if l.Layer < 0 || l.Layer >= 8 || len(l.First8) > 256 {
					t.Errorf("have layer %+v", l)
				}
			}
		}
	})
}

func TestDivergence(t *testing.T) {
	t.Parallel()
	ln := func(p ...float64) (out []float32) {
		for _, x := range p {
			out = append(out, float32(math.Log(x)+7))
		}
		return out
	}
	want := 0.5*math.Log(0.5/0.25) + 0.5*math.Log(0.5/0.75)
	if have := divergence(ln(0.5, 0.5), ln(0.25, 0.75)); math.Abs(have-want) > 1e-6 {
		t.Errorf("have %v, want %v", have, want)
	}
	if have := divergence(ln(0.1, 0.9), ln(0.1, 0.9)); have > 1e-9 {
		t.Errorf("of equal ones: have %v", have)
	}
}

// TestVerify replays a case of the tiny model's, as it is and with each kind of difference.
func TestVerify(t *testing.T) {
	t.Parallel()
	needGPU(t)
	in := func(f func(c map[string]any)) func(refsJSON) { return func(r refsJSON) { f(r.first()) } }
	add := func(x any, by float64) float64 { return x.(float64) + by }
	for name, test := range map[string]struct {
		change func(refsJSON)
		logits func([]byte) []byte
		wants  []string // in the error; none: it agrees
	}{
		"agrees": {change: func(refsJSON) {}},
		"prompt": {change: in(func(c map[string]any) { c["tokens"].([]any)[2] = 17 }), wants: []string{"case text2: prompt: ids of the text: have ["}},
		"layer": {change: in(func(c map[string]any) {
			l := c["layers"].([]any)[3].(map[string]any)
			l["first8"].([]any)[5] = add(l["first8"].([]any)[5], 0.01)
			c["positions"].([]any)[0].(map[string]any)["logsumexp"] = 0.5 // the layer comes first
		}), wants: []string{"case text2: layer 3: value 5 at the last token: have ", " within 0.00"}},
		"position": {change: in(func(c map[string]any) {
			p := c["positions"].([]any)[1].(map[string]any)
			p["logsumexp"] = add(p["logsumexp"], -0.002)
		}), wants: []string{"case text2: position 1: logsumexp: have ", " within 0.001"}},
		"logits": {change: func(refsJSON) {}, logits: func(b []byte) []byte { clear(b[4*9 : 4*10]); return b }, wants: []string{"case text2: position 2: logit of token 9: have ", "want 0 within 0.001"}},
		"step": {change: in(func(c map[string]any) {
			e := c["steps"].([]any)[2].(map[string]any)["top"].([]any)[4].([]any)
			e[1] = add(e[1], 0.0011)
		}), wants: []string{"case text2: step 2 (position 4): logit of token "}},
		"greedy":   {change: in(func(c map[string]any) { c["greedy"].([]any)[3] = 17 }), wants: []string{"case text2: step 3 (position 5): greedy token: have ", "want 17"}},
		"tokenize": {change: func(r refsJSON) { r["tokenize"].([]any)[4].(map[string]any)["ids"] = []int{1} }, wants: []string{"case tokenize: text 4: ids of ", "want [1]"}},
		"file":     {change: func(r refsJSON) { r["sha256"] = strings.Repeat("0", 64) }, wants: []string{"the cases are of another file: " + tiny + ": have SHA-256 c998da33"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refs := shortRefs(t)
			test.change(refs)
			r := runHost(t, "", "verify", "--model", tiny, "--refs", refs.write(t, test.logits))
			if len(test.wants) > 0 {
				r.fails(t, test.wants...)
				return
			}
			if r.code != 0 || !strings.Contains(r.stdout, "5 texts tokenized to the same ids") || !strings.Contains(r.stdout, "4/4") {
				t.Errorf("have code %d, output\n%s\nerrors %s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// TestVerifyJSON: how closely they agree, with --kv f16 and one token at a time.
func TestVerifyJSON(t *testing.T) {
	t.Parallel()
	needGPU(t)
	path := shortRefs(t).write(t, nil)
	verify := func(args ...string) (out verified, r result) {
		r = runHost(t, "", append([]string{"verify", "--model", tiny, "--refs", path, "--json", "--cases", "text2"}, args...)...)
		if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
			t.Fatalf("%v: have code %d, output %q, errors %s", err, r.code, r.stdout, r.stderr)
		}
		return out, r
	}
	out, r := verify("--chunk", "1")
	if r.code != 0 || len(out.Cases) != 1 || out.Tokenize != 5 || out.Difference != nil {
		t.Fatalf("have code %d, %+v", r.code, out)
	}
	c := out.Cases[0]
	if c.Case != "text2" || c.Tokens != 3 || c.Greedy != 4 || c.Compared != 4 || c.Logit <= 0 || c.Logit > 1e-3 ||
		c.KL == nil || *c.KL > 1e-6 || c.Layer == nil || *c.Layer <= 0 || *c.Layer > 1e-3 {
		t.Errorf("have %+v", c)
	}
	if out, r := verify("--kv", "f16", "--tolerance", "1e-6"); r.code != 1 || out.Difference == nil || out.Difference.Case != "text2" || out.Difference.Tolerance < 1e-6 {
		t.Errorf("f16 within 1e-6: have code %d, %+v", r.code, out)
	}
	if out, r := verify("--kv", "f16", "--tolerance", "0.1"); r.code != 0 || len(out.Cases) != 1 {
		t.Errorf("f16 within 0.1: have code %d, %+v, errors %s", r.code, out, r.stderr)
	}
	runHost(t, "", "verify", "--model", tiny, "--refs", path, "--ctx", "3").fails(t, "case text2: have 6 tokens, want at most the context's 3")
	runHost(t, "", "verify", "--model", tiny, "--refs", path, "--tolerance", "0").fails(t, "--tolerance: have 0, want more than 0")
}
