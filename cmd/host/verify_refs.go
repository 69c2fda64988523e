package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/sdk/program"
)

// refs is a file of golden cases: what a reference implementation made of a model. Fields that tell of its making
// are left unread.
type refs struct {
	Arch     string         `json:"arch"`
	Files    []string       `json:"files"`
	SHA256   string         `json:"sha256"` // of the GGUF
	Dims     map[string]any `json:"dims"`
	Cases    []*refCase     `json:"cases"`
	Tokenize []refText      `json:"tokenize"`

	folder string // of the file
}

// refCase is one prompt with what follows it.
type refCase struct {
	Name         string        `json:"name"`
	Prompt       *string       `json:"prompt_text"`
	AddSpecial   bool          `json:"prompt_add_special"`
	ParseSpecial bool          `json:"prompt_parse_special"`
	Tokens       idList        `json:"tokens"`
	Positions    []refPosition `json:"positions"`
	Greedy       idList        `json:"greedy"`
	Steps        []refPosition `json:"steps"`
	LogitsFile   string        `json:"logits_file"`
	Layers       []refLayer    `json:"layers"`

	logits []float32 // of LogitsFile, at the last token; nil without one
}

// refPosition is the logits after the token at a position.
type refPosition struct {
	Pos       int        `json:"pos"`
	Top       []refLogit `json:"top"`
	LogSumExp float64    `json:"logsumexp"`
}

// refLogit is a pair [id, logit].
type refLogit struct {
	id    int32
	logit float64
}

// UnmarshalJSON reads the pair.
func (r *refLogit) UnmarshalJSON(data []byte) error {
	var pair []*float64
	if json.Unmarshal(data, &pair) != nil || len(pair) != 2 || pair[0] == nil || pair[1] == nil || *pair[0] != float64(int32(*pair[0])) {
		return fmt.Errorf("have %.60s, want a token id and its logit", data)
	}
	*r = refLogit{int32(*pair[0]), *pair[1]}
	return nil
}

// refLayer is the residual stream after a block, at the last token of the prompt.
type refLayer struct {
	Layer  int       `json:"layer"`
	RMS    float64   `json:"rms"`
	First8 []float64 `json:"first8"`
}

// refText is a text and its ids.
type refText struct {
	Text         string `json:"text"`
	ParseSpecial bool   `json:"parse_special"`
	IDs          idList `json:"ids"`
}

// readRefs reads a file of cases, those of the given names or all, with the logits beside it.
func readRefs(path string, names []string) (*refs, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would block, a device never end
		return nil, fmt.Errorf("%s: have a folder or special file, want a file of golden cases", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := parseRefs(data, names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.folder = filepath.Dir(path)
	return r, nil
}

// parseRefs reads and checks the JSON.
func parseRefs(data []byte, names []string) (*refs, error) {
	r := &refs{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("not a file of golden cases: %w", jsonFault(err))
	}
	if len(r.Cases) == 0 && len(r.Tokenize) == 0 {
		return nil, errors.New(`have neither "cases" nor "tokenize": is this a file of golden cases?`)
	}
	if err := r.choose(names); err != nil {
		return nil, err
	}
	for i, c := range r.Cases {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("case %d %q: %w", i, c.Name, err)
		}
	}
	return r, nil
}

// choose keeps the named cases.
func (r *refs) choose(names []string) error {
	var all []string
	byName := map[string]*refCase{}
	for i, c := range r.Cases {
		if c == nil {
			return fmt.Errorf("case %d is null", i)
		}
		all = append(all, c.Name)
		byName[c.Name] = c
	}
	if len(names) == 0 {
		return nil
	}
	r.Cases = nil
	for _, n := range names {
		if byName[n] == nil {
			return fmt.Errorf("have no case %q, want one of %s", n, strings.Join(all, ", "))
		}
		r.Cases = append(r.Cases, byName[n])
	}
	return nil
}

// check refuses cases that contradict themselves.
func (c *refCase) check() error {
	if len(c.Tokens) == 0 {
		return errors.New("have no tokens, want a prompt")
	}
	if c.Prompt == nil && c.LogitsFile == "" && len(c.Positions) == 0 && len(c.Greedy) == 0 && len(c.Layers) == 0 {
		return errors.New(`have nothing to compare, want "positions", "greedy", "layers", "logits_file" or "prompt_text"`)
	}
	if len(c.Steps) != 0 && len(c.Steps) != len(c.Greedy) {
		return fmt.Errorf("have %s and %s, want as many", plural(len(c.Steps), "step"), plural(len(c.Greedy), "greedy token"))
	}
	for i, p := range c.Positions {
		if p.Pos < 0 || p.Pos >= len(c.Tokens) || i > 0 && p.Pos <= c.Positions[i-1].Pos {
			return fmt.Errorf("positions: have %d, want ascending ones below %d", p.Pos, len(c.Tokens))
		}
	}
	for i, s := range c.Steps {
		if want := len(c.Tokens) - 1 + i; s.Pos != want {
			return fmt.Errorf("step %d: have position %d, want %d", i, s.Pos, want)
		}
	}
	if c.LogitsFile != "" && !filepath.IsLocal(c.LogitsFile) {
		return fmt.Errorf("logits_file: have %q, want a file beside the cases", c.LogitsFile)
	}
	return nil
}

// about checks that the cases are of this model, and reads their logits.
func (r *refs) about(m *program.Model) error {
	if r.Arch != "" && r.Arch != m.GetArchitecture() {
		return fmt.Errorf("the cases are of a model of architecture %s, this one is %s", r.Arch, m.GetArchitecture())
	}
	for _, d := range []struct {
		key  string
		have uint32
	}{{"H", m.GetHidden()}, {"V", m.GetVocab()}, {"layers", m.GetLayers()}, {"experts", m.GetExperts()}, {"top_k", m.GetTopK()}} {
		if want, ok := r.Dims[d.key].(float64); ok && want != float64(d.have) {
			return fmt.Errorf("the cases are of another model: dims.%s: this model has %d, the cases' %v", d.key, d.have, want)
		}
	}
	for _, c := range r.Cases {
		if err := c.about(m, r.folder); err != nil {
			return fmt.Errorf("case %s: %w", c.Name, err)
		}
	}
	return nil
}

func (c *refCase) about(m *program.Model, folder string) error {
	vocab, ids := int32(m.GetVocab()), slices.Concat(c.Tokens, c.Greedy)
	for _, p := range slices.Concat(c.Positions, c.Steps) {
		for _, e := range p.Top {
			ids = append(ids, e.id)
		}
	}
	for _, id := range ids {
		if id < 0 || id >= vocab {
			return fmt.Errorf("the cases are of another model: have token %d, want one below this model's vocabulary of %d", id, vocab)
		}
	}
	for _, l := range c.Layers {
		if l.Layer < 0 || l.Layer >= int(m.GetLayers()) || len(l.First8) > int(m.GetHidden()) {
			return fmt.Errorf("the cases are of another model: have %s of layer %d, this model has %s of %d", plural(len(l.First8), "value"), l.Layer, plural(m.GetLayers(), "layer"), m.GetHidden())
		}
	}
	if c.LogitsFile == "" {
		return nil
	}
	var err error
	c.logits, err = readLogits(filepath.Join(folder, c.LogitsFile), int(vocab))
	return err
}

// readLogits reads n little-endian f32.
func readLogits(path string, n int) ([]float32, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != int64(4*n) {
		return nil, fmt.Errorf("%s: have %v of %s, want a file of %d: a logit per token of the vocabulary", path, info.Mode().Type(), plural(info.Size(), "byte"), 4*n)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) != 4*n {
		return nil, fmt.Errorf("%s: the file changed while it was read", path)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}
