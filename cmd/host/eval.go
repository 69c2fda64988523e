package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/sample"
	"github.com/sluicehost/sluice/core/tokenizer"
)

type evalCmd struct {
	modelFlags
	engineFlags
	registryFlags
	statsFlag
	traceFlag
	Dump string `placeholder:"DIR" help:"Write every value of every step to a file in this folder, which must be new or empty: slow, for finding where two runs part."`
}

// Help is the command's long help.
func (evalCmd) Help() string {
	return `Each line in is an object with "tokens":[...] or "prompt":"...", and each line out answers it from an empty context, in order.

In: {"id":..., "tokens":[1,2], "greedy":0, "top":10, "last":8}; instead of tokens "prompt" with "parse_special" and "add_special" (both default true). greedy is how many tokens to continue, top how many logits to list, last for how many of the prompt's last positions.

Out: {"id","tokens","positions":[{"pos","top":[[id,logit],...],"logsumexp"}],"greedy":[ids],"steps":[{"pos","top","logsumexp"}]}; end tokens do not stop greedy. A line that can't be answered gives {"id","error"}, and the exit code is 1 in the end.

--dump DIR: in DIR/LINE.ID/FIRST-LAST (positions of the step), NUMBER.LABEL.VARIABLE.npy holds what a dispatch wrote, float32 [rows, width], numbered in order of the program; .resultN marks what block N leaves on the residual stream. NumPy reads them.`
}

// evalLine is a line of input.
type evalLine struct {
	ID           json.RawMessage `json:"id"`
	Tokens       idList          `json:"tokens"`
	Prompt       *string         `json:"prompt"`
	ParseSpecial *bool           `json:"parse_special"`
	AddSpecial   *bool           `json:"add_special"`
	Greedy       *int            `json:"greedy"`
	Top          *int            `json:"top"`
	Last         *int            `json:"last"`
}

// evalAnswer is a line of output.
type evalAnswer struct {
	ID        json.RawMessage `json:"id"`
	Tokens    []int32         `json:"tokens"`
	Positions []evalPosition  `json:"positions"`
	Greedy    []int32         `json:"greedy"`
	Steps     []evalPosition  `json:"steps"`
}

// evalFault is a line of output that tells an error.
type evalFault struct {
	ID    json.RawMessage `json:"id"`
	Error string          `json:"error"`
}

// evalPosition is what the model says after the token at a position.
type evalPosition struct {
	Pos       int     `json:"pos"`
	Top       []entry `json:"top"`
	LogSumExp float64 `json:"logsumexp"`
}

// entry is a token and its logit: [id, logit].
type entry struct {
	id    int32
	logit float32
}

// MarshalJSON writes the pair; the logit with as many digits as tell it from other float32s.
func (e entry) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{e.id, e.logit}) }

// Run answers line by line.
func (c *evalCmd) Run(a *app) error {
	var d *dump
	if c.Dump != "" {
		var err error
		if d, err = newDump(c.Dump); err != nil {
			return err
		}
	}
	if err := apart(output{"--stats-json", c.StatsJSON}, output{"--trace", c.Trace}); err != nil {
		return err
	}
	stats, err := c.statsFlag.open(a)
	if err != nil {
		return err
	}
	defer stats.close()
	l, err := c.traceFlag.load(a, c.modelFlags, c.registryFlags, c.engineFlags, engine.Options{Trace: d.trace()})
	if err != nil {
		return err
	}
	err = a.eachLine(func(ctx context.Context, in line) (any, bool) {
		id, out, err := l.eval(ctx, in, d)
		if id == nil {
			id = json.RawMessage("null")
		}
		if err != nil {
			return evalFault{id, err.Error()}, true
		}
		out.ID = id
		return out, false
	})
	return errors.Join(err, stats.write(l.report()), l.close())
}

// eval answers one line, into the dump if there is one. The id comes back with an error, too, if the line has one.
func (l *loaded) eval(ctx context.Context, in line, d *dump) (json.RawMessage, *evalAnswer, error) {
	if in.err != nil {
		return nil, nil, in.err
	}
	var q evalLine
	if err := parse(in.text, &q); err != nil {
		var only struct{ ID json.RawMessage }
		_ = json.Unmarshal(in.text, &only) // no id, then
		return only.ID, nil, err
	}
	ids, err := l.promptOf(ctx, &q)
	if err != nil {
		return q.ID, nil, err
	}
	greedy, top, last, err := q.counts()
	if err != nil {
		return q.ID, nil, err
	}
	if room := l.model.Context; len(ids) > room || greedy > room-len(ids) {
		return q.ID, nil, fmt.Errorf("have %s of prompt and %d greedy ones, want at most the context's %d: %s", plural(len(ids), "token"), greedy, room, l.fit("fewer"))
	}
	d.begin(q.ID)
	out, err := l.answer(ctx, ids, greedy, top, last)
	return q.ID, out, err
}

// promptOf is the prompt's ids.
func (l *loaded) promptOf(ctx context.Context, q *evalLine) ([]int32, error) {
	ids := []int32(q.Tokens)
	switch {
	case q.Prompt != nil && q.Tokens != nil:
		return nil, errors.New(`have "tokens" and "prompt", want one of them`)
	case q.Prompt != nil:
		var err error
		if ids, err = l.encode(ctx, *q.Prompt, tokenizer.Options{
			ParseSpecial: q.ParseSpecial == nil || *q.ParseSpecial,
			AddSpecial:   q.AddSpecial == nil || *q.AddSpecial,
		}); err != nil {
			return nil, err
		}
	case q.Tokens == nil:
		return nil, errors.New(`have neither "tokens" nor "prompt", want one of them`)
	case q.ParseSpecial != nil || q.AddSpecial != nil:
		return nil, errors.New(`"parse_special" and "add_special" go with "prompt"`)
	}
	if len(ids) == 0 {
		return nil, errors.New("have no tokens, want at least one")
	}
	return ids, checkIDs(l.tok, ids)
}

// counts are the numbers asked for, or their defaults.
func (q *evalLine) counts() (greedy, top, last int, err error) {
	top, last = 10, 8
	for _, x := range []struct {
		name  string
		given *int
		to    *int
	}{{"greedy", q.Greedy, &greedy}, {"top", q.Top, &top}, {"last", q.Last, &last}} {
		if x.given == nil {
			continue
		}
		if *x.given < 0 {
			return 0, 0, 0, fmt.Errorf("field %q: have %d, want 0 or more", x.name, *x.given)
		}
		*x.to = *x.given
	}
	return greedy, top, last, nil
}

// answer runs a prompt in an empty session, and on greedily.
func (l *loaded) answer(ctx context.Context, ids []int32, greedy, top, last int) (*evalAnswer, error) {
	if err := l.session.Reset(); err != nil {
		return nil, err
	}
	out := &evalAnswer{Tokens: ids, Positions: []evalPosition{}, Greedy: []int32{}, Steps: []evalPosition{}}
	shown := min(last, len(ids))
	want := shown
	if greedy > 0 {
		want = max(want, 1)
	}
	// step takes the logits that choose the next greedy token.
	step := func(at evalPosition, logits []float32) error {
		next, err := sample.Greedy(logits)
		out.Greedy, out.Steps = append(out.Greedy, next), append(out.Steps, at)
		return err
	}
	l.routes.decoding(false)
	err := l.session.Feed(ctx, ids, want, func(pos int, l *engine.Logits) error {
		at, err := report(pos, l.All, top)
		if err != nil {
			return err
		}
		if pos >= len(ids)-shown {
			out.Positions = append(out.Positions, at)
		}
		if pos == len(ids)-1 && greedy > 0 {
			return step(at, l.All)
		}
		return nil
	})
	l.routes.decoding(true)
	for err == nil && len(out.Greedy) < greedy {
		err = l.session.Feed(ctx, out.Greedy[len(out.Greedy)-1:], 1, func(pos int, l *engine.Logits) error {
			at, err := report(pos, l.All, top)
			if err != nil {
				return err
			}
			return step(at, l.All)
		})
	}
	return out, err
}

// report describes the logits at a position.
func report(pos int, logits []float32, top int) (evalPosition, error) {
	p := evalPosition{Pos: pos, Top: []entry{}, LogSumExp: sample.LogSumExp(logits)}
	if math.IsNaN(p.LogSumExp) || math.IsInf(p.LogSumExp, 0) {
		return p, fmt.Errorf("the logits at position %d are not finite", pos)
	}
	ids, values := sample.Top(logits, top)
	for i, id := range ids {
		if math.IsInf(float64(values[i]), -1) { // a suppressed token, which JSON has no number for
			break
		}
		p.Top = append(p.Top, entry{id, values[i]})
	}
	return p, nil
}
