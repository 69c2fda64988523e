package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/core/chat/jinja"
	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/sample"
)

type chatCmd struct {
	modelFlags
	engineFlags
	registryFlags
	chatFlags
	showStats
	warmFlag
	Snapshots int     `default:"2" placeholder:"N" help:"Copies of the model's recurrent state to keep on the GPU, so that a turn begins where the one before it did (default 2); 0 reads the conversation anew each turn. They count in --gpu-budget."`
	Tokens    int     `name:"tokens" short:"n" default:"4096" placeholder:"N" help:"Most tokens of an answer (default 4096)."`
	Temp      float64 `default:"0.7" placeholder:"T" help:"Temperature (default 0.7); 0 takes the likeliest token."`
	TopK      int     `default:"40" placeholder:"K" help:"Draw from the K likeliest tokens only (default 40); 0 is all."`
	Seed      *uint64 `short:"s" placeholder:"SEED" help:"Of the random numbers. Default: another one each time."`
}

// Help is the command's long help.
func (chatCmd) Help() string {
	return `Each line in is a message; answers go to standard output, reasoning and prompts to standard error. /reset begins a new conversation, /exit or the end of the input ends the chat, /help lists these, Ctrl-C stops an answer; a message that begins with a slash wants a space before it. Reasoning of earlier answers is given to the template, which keeps or drops it as the family does.`
}

// maxSnapshots bounds --snapshots; each may be tens of megabytes.
const maxSnapshots = 64

func checkSnapshots(n int) error {
	if n < 0 || n > maxSnapshots {
		return fmt.Errorf("--snapshots: have %d, want 0 to %d", n, maxSnapshots)
	}
	return nil
}

// Run talks until the input ends.
func (c *chatCmd) Run(a *app) error {
	if err := checkSnapshots(c.Snapshots); err != nil {
		return err
	}
	if c.Tokens < 1 {
		return fmt.Errorf("-n: have %s, want 1 or more", plural(c.Tokens, "token"))
	}
	params := sample.Params{Temp: c.Temp, TopK: c.TopK, Seed: rand.Uint64()}
	if c.Seed != nil {
		params.Seed = *c.Seed
	}
	sampler, err := sample.New(params)
	if err != nil {
		return err
	}
	l, err := a.load(c.modelFlags, c.registryFlags, c.engineFlags, engine.Options{Top: sampler.Needs(), Snapshots: c.Snapshots, Timing: c.Stats})
	if err != nil {
		return err
	}
	l.warm(a, c.warmFlag)
	format, err := c.format(l)
	if err == nil {
		t := &talk{chatCmd: c, app: a, loaded: l, format: format, sampler: sampler}
		t.reset()
		err = t.run()
	}
	return errors.Join(err, l.close())
}

// talk is a conversation.
type talk struct {
	*chatCmd
	app      *app
	loaded   *loaded
	format   *chat.Format
	sampler  *sample.Sampler
	messages []chat.Message
}

func (t *talk) reset() {
	t.messages = nil
	if t.System != "" {
		t.messages = append(t.messages, chat.Message{Role: "system", Content: t.System})
	}
}

// run answers line by line. Errors of one message end neither the chat nor the conversation.
func (t *talk) run() error {
	lines := t.app.lines()
	for {
		if isTerminal(t.app.in) {
			fmt.Fprint(t.app.err, "> ")
		}
		var l line
		select {
		case l = <-lines:
		case <-t.app.ctx.Done():
			return t.app.ctx.Err()
		}
		text := strings.TrimSpace(string(l.text))
		err := l.err
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, errLineTooLong):
			return err
		case err == nil && text == "":
			continue
		case err == nil && isCommand(string(l.text)):
			if err = t.command(text); errors.Is(err, errExit) {
				return nil
			}
		case err == nil:
			err = t.turn(text)
		}
		if t.app.ctx.Err() != nil {
			return t.app.ctx.Err()
		}
		if raised := (jinja.Raised{}); errors.As(err, &raised) {
			err = fmt.Errorf("the chat template refuses this: %w", err)
		}
		if err != nil && !isTerminal(t.app.in) {
			return err // a script should not go on
		}
		if err != nil {
			complain(t.app.err, err)
		}
	}
}

// chatCommands is what a chat knows beside messages.
const chatCommands = `  /help   shows this
  /reset  begins a new conversation
  /exit   ends the chat, as the end of the input does
A message that begins with a slash wants a space before it.`

// errExit is how a command ends the chat.
var errExit = errors.New("exit")

// isCommand tells a command from a message, as which // may begin: source code does.
func isCommand(line string) bool {
	return strings.HasPrefix(line, "/") && !strings.HasPrefix(line, "//")
}

// command does what a line asks that is no message.
func (t *talk) command(text string) error {
	switch text {
	case "/help", "/?":
		_, err := fmt.Fprintln(t.app.err, chatCommands)
		return err
	case "/reset":
		t.reset()
		return nil
	case "/exit":
		return errExit
	}
	return fmt.Errorf("have no command %.60q, want one of these:\n%s", text, chatCommands)
}

// turn asks one message and keeps it with its answer. One that fails is forgotten.
func (t *talk) turn(text string) error {
	ctx, done := stoppable(t.app.ctx)
	defer done()
	messages := append(t.messages, chat.Message{Role: "user", Content: text})
	request := chat.Request{Messages: messages, Thinking: t.thinking()}
	p, err := t.format.Prompt(ctx, request)
	if err != nil {
		return err
	}
	answer := t.chatFlags.answer(t.app, t.format, p)
	g := &generation{loaded: t.loaded, sampler: t.sampler, answer: answer, most: t.Tokens, stop: t.loaded.stops(), stable: t.stable(ctx, request, p)}
	err = g.run(ctx, p.IDs)
	if ctx.Err() != nil && t.app.ctx.Err() == nil {
		err = nil // stopped by Ctrl-C: what has come stays
	}
	if g.begun {
		if _, written := fmt.Fprintln(t.app.out); err == nil {
			err = written
		}
		t.app.log.Debug("turn", "stats", g.stats(sample.Params{}))
		if t.Stats {
			fmt.Fprintln(t.app.err, g.stats(sample.Params{}))
			g.report().print(t.app.err)
		}
	}
	if err != nil {
		return err
	}
	t.messages = append(messages, chat.Message{Role: "assistant", Content: string(answer.text), Reasoning: string(answer.reasoning)})
	return nil
}

// stable is how much of a prompt the next one will begin with: all but the opening of the
// answer, which may be written otherwise once there is one.
func (t *talk) stable(ctx context.Context, r chat.Request, p chat.Prompt) int {
	r.Continue = true
	closed, err := t.format.Prompt(ctx, r)
	if err != nil {
		return 0 // the template wants an opening: nothing is lost but time
	}
	n := 0
	for n < len(closed.IDs) && n < len(p.IDs) && closed.IDs[n] == p.IDs[n] {
		n++
	}
	return n
}
