package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/sample"
	"github.com/sluicehost/sluice/core/tokenizer"
)

type runCmd struct {
	modelFlags
	engineFlags
	registryFlags
	statsFlag
	showStats
	warmFlag
	traceFlag
	chatFlags
	Prompt *string `short:"p" placeholder:"TEXT" help:"What the user says; with --raw the text to continue. Default: standard input, less one final newline."`
	Tokens int     `name:"tokens" short:"n" default:"512" placeholder:"N" help:"Most tokens to generate (default 512)."`
	Raw    bool    `help:"Continue the prompt as it is, without a chat template. A BOS is put in front where the model asks for one, and special tokens in the prompt are recognized."`
	Temp   float64 `default:"0" placeholder:"T" help:"Temperature; 0 (default) takes the likeliest token."`
	TopK   int     `default:"0" placeholder:"K" help:"With --temp, draw from the K likeliest tokens only; 0 (default) is all."`
	Seed   *uint64 `short:"s" placeholder:"SEED" help:"Of the random numbers for --temp. Default: another one each time; it is shown at the end."`
}

// Help is the command's long help.
func (runCmd) Help() string {
	return `The prompt is put into the chat template of the model's file, or else of its plugin, and nothing in it becomes a control token. With --raw it is continued as it is, and special tokens in it are recognized. The answer and a final newline go to standard output, reasoning to standard error, dimmed on a terminal. It ends at a token that ends a text or turn, after -n tokens, or when the context is full; then a line of statistics goes to standard error.`
}

// Run continues the prompt.
func (c *runCmd) Run(a *app) error {
	if c.Raw && c.chatFlags != (chatFlags{Think: "auto"}) {
		return errors.New("--system, --think, --hide-thinking and --template are for chats: they don't go with --raw")
	}
	if c.Tokens < 0 {
		return fmt.Errorf("-n: have %s, want 0 or more", plural(c.Tokens, "token"))
	}
	params := sample.Params{Temp: c.Temp, TopK: c.TopK, Seed: rand.Uint64()}
	if c.Seed != nil {
		params.Seed = *c.Seed
	}
	sampler, err := sample.New(params)
	if err != nil {
		return err
	}
	prompt, err := c.prompt(a)
	if err != nil {
		return err
	}
	if err := apart(output{"--stats-json", c.StatsJSON}, output{"--trace", c.Trace}); err != nil {
		return err
	}
	stats, err := c.statsFlag.open(a)
	if err != nil {
		return err
	}
	defer stats.close()
	l, err := c.traceFlag.load(a, c.modelFlags, c.registryFlags, c.engineFlags, engine.Options{Top: sampler.Needs(), Timing: c.Stats})
	if err != nil {
		return err
	}
	l.warm(a, c.warmFlag)
	g := &generation{loaded: l, sampler: sampler, most: c.Tokens, stop: l.stops()}
	ids, err := c.begin(a, l, g, prompt)
	if err == nil {
		err = g.run(a.ctx, ids)
	}
	if g.begun {
		if _, written := fmt.Fprintln(a.out); err == nil {
			err = written
		}
		fmt.Fprintln(a.err, g.stats(params))
		if c.Stats {
			g.report().print(a.err)
		}
	}
	if err == nil || g.begun { // else there is nothing to tell, and an earlier report stays
		err = errors.Join(err, stats.write(g.report()))
	}
	return errors.Join(err, l.close())
}

// begin makes the tokens of the prompt, and what prints the answer.
func (c *runCmd) begin(a *app, l *loaded, g *generation, prompt string) ([]int32, error) {
	if c.Raw {
		g.answer = &rawAnswer{a.out, l.tok.Stream(false)}
		return l.encode(a.ctx, prompt, tokenizer.Options{AddSpecial: true, ParseSpecial: true})
	}
	f, err := c.format(l)
	if err != nil {
		return nil, err
	}
	r := chat.Request{Thinking: c.thinking()}
	if c.System != "" {
		r.Messages = append(r.Messages, chat.Message{Role: "system", Content: c.System})
	}
	r.Messages = append(r.Messages, chat.Message{Role: "user", Content: prompt})
	p, err := f.Prompt(a.ctx, r)
	if err != nil {
		return nil, err
	}
	g.answer = c.chatFlags.answer(a, f, p)
	return p.IDs, nil
}

// encode gives the ids of a prompt. It refuses at once one that has more bytes than the context can hold.
func (l *loaded) encode(ctx context.Context, prompt string, o tokenizer.Options) ([]int32, error) {
	if least, room := l.tok.Least(len(prompt)), l.model.Context; least > room {
		return nil, fmt.Errorf("the prompt has %s, so at least %s, the context holds %d: %s", plural(len(prompt), "byte"), plural(least, "token"), room, l.fit("a shorter prompt"))
	}
	return l.tok.EncodeContext(ctx, prompt, o)
}

// prompt is the text to continue.
func (c *runCmd) prompt(a *app) (string, error) {
	if c.Prompt != nil {
		return *c.Prompt, nil
	}
	if isTerminal(a.in) {
		fmt.Fprintln(a.err, "host: reading the prompt from the terminal; Ctrl-D ends it")
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(a.in, maxLine+1))
		if err == nil && len(text) > maxLine {
			err = fmt.Errorf("have more than %d MiB: give a shorter one", maxLine>>20)
		}
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			return "", fmt.Errorf("reading the prompt: %w", r.err)
		}
		text, _ := strings.CutSuffix(string(r.text), "\n")
		text, _ = strings.CutSuffix(text, "\r")
		return text, nil
	case <-a.ctx.Done():
		return "", a.ctx.Err()
	}
}

// stops are the tokens that end a text: the vocabulary's end tokens and the plan's.
func (l *loaded) stops() map[int32]bool { return chat.Stops(l.tok, l.model.Plan.GetChat()) }

// generation is one answer in the making.
type generation struct {
	*loaded
	sampler *sample.Sampler
	answer  answer
	stop    map[int32]bool
	most    int
	stable  int // tokens of the prompt that the next one will begin with: a snapshot is made there; 0: none

	begun           bool // the prompt fits, so that there is something to tell
	prompted, made  int  // tokens; those that the session held are not prompted
	prefill, decode time.Duration
	decoding        bool   // the prompt is done
	decoded         mark   // what had been taken then
	end             string // why it ended
}

// run feeds the prompt and makes tokens until one of the ends.
func (g *generation) run(ctx context.Context, ids []int32) error {
	if len(ids) == 0 {
		return errors.New("the prompt is empty, and this model puts no BOS in front: want a prompt")
	}
	if room := g.model.Context; len(ids) > room {
		return fmt.Errorf("the prompt has %s, the context holds %d: %s", plural(len(ids), "token"), room, g.fit("a shorter prompt"))
	}
	g.begun, g.prompted = true, len(ids)
	g.routes.decoding(false)
	var next int32
	pick := func(_ int, l *engine.Logits) (err error) {
		if l.All == nil {
			next, err = g.sampler.SampleTop(l.IDs, l.Top)
			return err
		}
		next, err = g.sampler.Sample(l.All)
		return err
	}
	start := time.Now()
	err := g.feed(ctx, ids, pick)
	g.prefill = time.Since(start)
	g.routes.decoding(true)
	g.decoding, g.decoded = true, g.mark()
	start = time.Now()
	for err == nil {
		if done, e := g.take(next); done || e != nil {
			err = e
			break
		}
		if err = ctx.Err(); err == nil {
			err = g.session.Feed(ctx, []int32{next}, 1, pick)
		}
	}
	g.decode = time.Since(start)
	switch {
	case errors.Is(err, engine.ErrContextFull):
		g.end, err = fmt.Sprintf("the context of %s is full (--ctx)", plural(g.model.Context, "token")), nil
	case ctx.Err() != nil:
		g.end = "interrupted"
	case err != nil:
		g.end = "failed"
	}
	if e := g.answer.flush(); err == nil {
		err = e
	}
	return err
}

// feed makes the session hold the prompt. It keeps what it can of an earlier one.
func (g *generation) feed(ctx context.Context, ids []int32, pick func(int, *engine.Logits) error) error {
	if g.stable <= 0 || g.stable >= len(ids) {
		kept, err := g.session.Continue(ctx, ids, 1, pick)
		g.prompted -= kept
		return err
	}
	kept, err := g.session.Continue(ctx, ids[:g.stable], 0, nil)
	g.prompted -= kept
	if err == nil {
		err = g.session.Snapshot()
	}
	if err != nil {
		return err
	}
	return g.session.Feed(ctx, ids[g.stable:], 1, pick)
}

// take prints a token and says whether it was the last.
func (g *generation) take(id int32) (done bool, err error) {
	if g.made == g.most {
		g.end = "-n reached"
		return true, nil
	}
	if g.stop[id] {
		g.end = "end token " + string(g.tok.Piece(id))
		return true, nil
	}
	g.made++
	if err := g.answer.push(id); err != nil {
		return true, err
	}
	return false, nil
}
