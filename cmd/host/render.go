package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/core/chat/jinja"
	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/tokenizer"
	"github.com/sluicehost/sluice/sdk/program"
)

type renderCmd struct {
	Model    string     `short:"m" placeholder:"FILE" help:"GGUF file, or a store's folder: its chat template, or else the one of its plugin."`
	Template string     `placeholder:"FILE" help:"File with a chat template in Jinja. With --model, too, it goes before the model's."`
	Now      *time.Time `placeholder:"TIME" help:"Time that strftime_now gives, as in 2026-11-29T12:00:00Z. Default: the time of the rendering."`
	registryFlags
}

// Help is the command's long help.
func (renderCmd) Help() string {
	return `Each line in is an object {"id":...,"context":{"messages":[...],...},"tokens":{"bos_token":"...",...}}, each line out {"id":...,"text":"..."} or {"id":...,"error":"..."}. context holds the variables of the template; tokens, which may be missing, the texts of the model's own tokens; id is anything and may be missing, too. The name, text and error of a golden case are passed over.

A line that can't be used, or that the template refuses, gives an error, and the exit code is 1 in the end.`
}

// renderLine is a line of input: a golden case as it is, or its fields that matter.
type renderLine struct {
	ID      json.RawMessage   `json:"id"`
	Context json.RawMessage   `json:"context"`
	Tokens  map[string]string `json:"tokens"`
	Name    json.RawMessage   `json:"name"`
	Text    json.RawMessage   `json:"text"`
	Error   json.RawMessage   `json:"error"`
}

// rendered is a line of output.
type rendered struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Text  *string         `json:"text,omitempty"`
	Error string          `json:"error,omitempty"`
}

// Run answers line by line.
func (c *renderCmd) Run(a *app) error {
	source, names, err := c.source(a)
	if err != nil {
		return err
	}
	t, err := jinja.Compile(source)
	if err != nil && c.Template != "" {
		return fmt.Errorf("--template: %s: %w", c.Template, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w (--template gives another)", c.Model, err)
	}
	return a.eachLine(func(ctx context.Context, l line) (any, bool) {
		var in renderLine
		text, err := c.answer(ctx, t, names, l, &in)
		out := rendered{ID: in.ID}
		if err != nil {
			out.Error = err.Error()
			return out, true
		}
		out.Text = &text
		return out, false
	})
}

func (c *renderCmd) answer(ctx context.Context, t *jinja.Template, names map[string]string, l line, in *renderLine) (string, error) {
	if l.err != nil {
		return "", l.err
	}
	if err := parse(l.text, in); err != nil {
		return "", err
	}
	if len(in.Context) == 0 || in.Context[0] != '{' {
		return "", errors.New(`have no "context", want an object with the variables of the template`)
	}
	if in.Tokens != nil {
		names = in.Tokens
	}
	var now time.Time
	if c.Now != nil {
		now = *c.Now
	}
	pieces, err := chat.Pieces(ctx, t, in.Context, names, now)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// source is the template, and the texts of the model's tokens if there is a model.
func (c *renderCmd) source(a *app) (string, map[string]string, error) {
	if c.Model == "" && c.Template == "" {
		return "", nil, errors.New("missing flags: --model=FILE or --template=FILE")
	}
	var source string
	if c.Template != "" {
		var err error
		if source, err = readTemplate(c.Template); err != nil || c.Model == "" {
			return source, nil, err
		}
	}
	f, err := modelFlags{Model: c.Model}.open()
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	tok, err := tokenizer.New(f.Metadata)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", f.path, err)
	}
	if c.Template == "" {
		source, err = c.ofModel(a, f)
	}
	return source, chat.TokenNames(tok), err
}

// ofModel is the model's template, or its plugin's.
func (c *renderCmd) ofModel(a *app, f *openModel) (string, error) {
	source, ok, err := chat.Template(f.Metadata)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.path, err)
	}
	if ok {
		return source, nil
	}
	process, err := a.pluginFor(f.File, f.path, c.registryFlags)
	if err != nil {
		return "", err
	}
	defer process.Close()
	x, err := engine.Ask(a.ctx, store.Header(f.File), process, program.Bounds{Limits: (&pluginPlanCmd{}).limits()}, engine.Options{})
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.path, err)
	}
	if source = x.Plan.GetChat().GetTemplate(); source == "" {
		return "", fmt.Errorf("%s: %w", f.path, errNoTemplate)
	}
	return source, nil
}

var errNoTemplate = errors.New("have no chat template, neither in the file nor in its plugin: give one with --template, or continue text with run --raw")

// maxTemplateFile is how long a template's file may be; jinja.Compile has the same limit.
const maxTemplateFile = 1 << 20

func readTemplate(path string) (string, error) {
	b, err := readLimited(path, maxTemplateFile)
	if err == nil && len(b) == 0 {
		err = fmt.Errorf("%s: have an empty file, want a chat template in Jinja", path)
	}
	if err != nil {
		return "", fmt.Errorf("--template: %w", err)
	}
	return string(b), nil
}
