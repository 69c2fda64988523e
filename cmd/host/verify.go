package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/tokenizer"
)

type verifyCmd struct {
	modelFlags
	engineFlags `set:"kv=f32"`
	registryFlags
	Refs      string   `required:"" placeholder:"FILE" help:"Golden cases: JSON, with the logits that it names in files beside it."`
	Cases     nameList `placeholder:"NAME" help:"Replay these cases only, joined by commas. Default: all."`
	Tolerance float64  `default:"1e-3" placeholder:"X" help:"Largest difference of a logit that is none (default 1e-3); of values in a layer, times their root mean square where that is above 1."`
	JSON      bool     `name:"json" help:"As JSON."`
}

// nameList is names with commas between; where its flag comes more often, of all of them.
type nameList []string

// UnmarshalText reads at least one name.
func (l *nameList) UnmarshalText(text []byte) error {
	names := kong.SplitEscaped(string(text), ',')
	if len(names) == 0 || slices.Contains(names, "") {
		return fmt.Errorf("have %q, want names with commas between", text)
	}
	*l = append(*l, names...)
	return nil
}

// Help is the command's long help.
func (verifyCmd) Help() string {
	return `Replays prompts and compares with what a reference implementation made of them: token ids, each block's result at the prompt's last token, logits at positions and greedy steps, and the greedy tokens (but where the reference's best two logits are within twice the tolerance).

Ends at the first difference with exit code 1 and says where it is: case, layer, position or step. Where all agree, a table says how closely.`
}

// verified is the command's result.
type verified struct {
	Cases      []agreement `json:"cases"`    // that agree, in order
	Tokenize   int         `json:"tokenize"` // texts that give the reference's ids
	Difference *difference `json:"difference,omitempty"`
}

// Run replays the cases.
func (c *verifyCmd) Run(a *app) error {
	if !(c.Tolerance > 0) || math.IsInf(c.Tolerance, 0) { // within which all would agree
		return fmt.Errorf("--tolerance: have %v, want more than 0 and finite", c.Tolerance)
	}
	refs, err := readRefs(c.Refs, c.Cases)
	if err != nil {
		return err
	}
	if err := a.sameFile(c.Model, refs); err != nil {
		return err
	}
	blocks := &blockResults{last: -1}
	l, err := a.load(c.modelFlags, c.registryFlags, c.engineFlags, engine.Options{Trace: blocks.trace(), Suppress: []int32{}})
	if err != nil {
		return err
	}
	r := &replay{loaded: l, tolerance: c.Tolerance, blocks: blocks}
	out, err := r.all(a.ctx, refs)
	if err := errors.Join(err, l.close()); err != nil {
		return fmt.Errorf("%s: %w", c.Refs, err)
	}
	if err := out.print(a, c.JSON); err != nil {
		return err
	}
	if out.Difference != nil {
		return fmt.Errorf("%s differs from %s: %w", l.path, c.Refs, out.Difference)
	}
	return nil
}

// sameFile checks a GGUF of one file against the checksum of the cases'.
func (a *app) sameFile(path string, r *refs) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || r.SHA256 == "" || len(r.Files) > 1 {
		return nil // a store is tied to its GGUF by itself; what is wrong with the path, opening it says better
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	shown := a.progress("checking the file")
	sum, done := sha256.New(), uint64(0)
	for err == nil && a.ctx.Err() == nil {
		var n int64
		n, err = io.CopyN(sum, f, 16<<20)
		done += uint64(n)
		shown.update(done, uint64(info.Size()))
	}
	shown.done()
	switch have := hex.EncodeToString(sum.Sum(nil)); {
	case a.ctx.Err() != nil:
		return a.ctx.Err()
	case !errors.Is(err, io.EOF):
		return err
	case !strings.EqualFold(have, r.SHA256):
		return fmt.Errorf("the cases are of another file: %s: have SHA-256 %s, want %s", path, have, r.SHA256)
	}
	return nil
}

// all replays every case up to the first difference, which is no error here.
func (r *replay) all(ctx context.Context, refs *refs) (*verified, error) {
	out := &verified{Cases: []agreement{}}
	if err := refs.about(r.model.Plan.Model); err != nil {
		return out, err
	}
	if err := r.texts(ctx, refs.Tokenize); errors.As(err, &out.Difference) {
		return out, nil
	} else if err != nil {
		return out, err
	}
	out.Tokenize = len(refs.Tokenize)
	for _, c := range refs.Cases {
		if want := len(c.Tokens) + max(0, len(c.Greedy)-1); want > r.model.Context {
			return out, fmt.Errorf("case %s: have %s, want at most the context's %d: %s", quoted(c.Name), plural(want, "token"), r.model.Context, r.fit("other cases (--cases)"))
		}
		agreed, err := r.run(ctx, c)
		if errors.As(err, &out.Difference) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("case %s: %w", c.Name, err)
		}
		out.Cases = append(out.Cases, agreed)
	}
	return out, nil
}

// texts compares the tokenizer's ids.
func (r *replay) texts(ctx context.Context, all []refText) error {
	for i, t := range all {
		have, err := r.tok.EncodeContext(ctx, t.Text, tokenizer.Options{ParseSpecial: t.ParseSpecial})
		if err != nil {
			return err
		}
		if fmt.Sprint(have) != fmt.Sprint([]int32(t.IDs)) {
			return &difference{Case: "tokenize", At: fmt.Sprintf("text %d", i), What: fmt.Sprintf("ids of %.80q", t.Text), Have: have, Want: []int32(t.IDs)}
		}
	}
	return nil
}

// print writes the table, or all as JSON. A table is of agreement only.
func (v *verified) print(a *app, asJSON bool) error {
	if asJSON {
		return a.printJSON(v)
	}
	if v.Difference != nil {
		return nil
	}
	number := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf("%.1e", *x)
	}
	w := &errWriter{w: a.out}
	if len(v.Cases) > 0 {
		table(w, func(t io.Writer) {
			fmt.Fprintln(t, "CASE\tTOKENS\tMAX |ΔLOGIT|\tKL\tGREEDY\tLAYERS MAX Δ")
			for _, c := range v.Cases {
				fmt.Fprintf(t, "%s\t%d\t%.1e\t%s\t%d/%d\t%s\n", quoted(c.Case), c.Tokens, c.Logit, number(c.KL), c.Greedy, c.Compared, number(c.Layer))
			}
		})
	}
	if v.Tokenize > 0 {
		fmt.Fprintf(w, "%s tokenized to the same ids\n", plural(v.Tokenize, "text"))
	}
	return w.err
}
