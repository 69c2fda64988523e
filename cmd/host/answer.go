package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/core/tokenizer"
)

// answer takes the tokens of a generation and prints them.
type answer interface {
	push(id int32) error
	flush() error // the generation has ended
}

// rawAnswer prints the text as it is.
type rawAnswer struct {
	out  io.Writer
	text *tokenizer.Stream
}

func (r *rawAnswer) push(id int32) error { return printText(r.out, r.text.Push(id)) }

func (r *rawAnswer) flush() error { return printText(r.out, r.text.Flush()) }

func printText(w io.Writer, text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// chatAnswer prints the answer proper to out and reasoning to thoughts, dimmed
// where that is a terminal.
type chatAnswer struct {
	reader   *chat.Reader
	out      io.Writer
	thoughts io.Writer // nil: reasoning is not shown
	dim      bool

	thinking        bool // a thought is being printed
	text, reasoning []byte
}

func (c *chatAnswer) push(id int32) error { return c.print(c.reader.Push(id)) }

func (c *chatAnswer) flush() error { return errors.Join(c.print(c.reader.Flush()), c.leave()) }

func (c *chatAnswer) print(parts []chat.Part) error {
	for _, p := range parts {
		if !p.Thought {
			c.text = append(c.text, p.Text...)
			if err := errors.Join(c.leave(), printText(c.out, p.Text)); err != nil {
				return err
			}
			continue
		}
		c.reasoning = append(c.reasoning, p.Text...)
		if c.thoughts == nil {
			continue
		}
		if !c.thinking && c.dim {
			if err := printText(c.thoughts, dimmed); err != nil {
				return err
			}
		}
		c.thinking = true
		if err := printText(c.thoughts, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// leave ends a thought that is being printed.
func (c *chatAnswer) leave() error {
	if !c.thinking {
		return nil
	}
	c.thinking = false
	end := "\n\n"
	if c.dim {
		end = normal + end
	}
	return printText(c.thoughts, end)
}

// chatFlags shape a chat.
type chatFlags struct {
	System       string `placeholder:"TEXT" help:"System message. Default: none."`
	Think        string `enum:"auto,on,off" default:"auto" placeholder:"MODE" help:"Reasoning before the answer: on, off, or auto (default) for what the model's template does by itself."`
	HideThinking bool   `help:"Don't show the reasoning."`
	Template     string `placeholder:"FILE" help:"Chat template in Jinja to use instead of the model's."`
}

// thinking is what a request says of reasoning.
func (c chatFlags) thinking() *bool {
	if c.Think == "auto" {
		return nil
	}
	on := c.Think == "on"
	return &on
}

// format makes the model's chat format.
func (c chatFlags) format(l *loaded) (*chat.Format, error) {
	source, facts := l.template, l.model.Plan.GetChat()
	if source == "" {
		source = facts.GetTemplate()
	}
	if c.Template != "" {
		var err error
		if source, err = readTemplate(c.Template); err != nil {
			return nil, err
		}
	}
	if source == "" {
		return nil, fmt.Errorf("%s: %w", l.path, errNoTemplate)
	}
	f, err := chat.New(source, l.tok, facts)
	if err != nil && c.Template == "" {
		return nil, fmt.Errorf("%s: %w (--template gives another)", l.path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("--template: %s: %w", c.Template, err)
	}
	return f, nil
}

// answer begins to print the answer to a prompt.
func (c chatFlags) answer(a *app, f *chat.Format, p chat.Prompt) *chatAnswer {
	out := &chatAnswer{reader: f.Read(p), out: a.out, thoughts: a.err}
	if c.HideThinking {
		out.thoughts = nil
	}
	out.dim = isTerminal(a.err) && os.Getenv("NO_COLOR") == ""
	return out
}
