// Package chat turns a conversation into the tokens that a model is asked to
// continue, and tells the reasoning of its answer from the rest.
//
// The words of a family are in a Jinja template, the model file's or else its
// plugin's. Text of the request never becomes a control token, whatever the
// template does with it: see docs/chat.md. Start at [New] and [Format.Prompt];
// [Split] reads answers.
package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/chat/jinja"
	"github.com/sluicehost/sluice/core/tokenizer"
	"github.com/sluicehost/sluice/sdk/program"
)

// Metadata is what a model file says of itself.
type Metadata interface {
	Value(key string) (any, bool)
}

const keyTemplate = "tokenizer.chat_template"

// MaxRequest is how long a request may be, in bytes of JSON.
const MaxRequest = 8 << 20

// Template is the chat template of a model file, or false if it has none.
func Template(md Metadata) (string, bool, error) {
	v, ok := md.Value(keyTemplate)
	if !ok {
		return "", false, nil
	}
	s, isString := v.(string)
	if !isString {
		return "", false, fmt.Errorf("key %s: have a %T, want a string", keyTemplate, v)
	}
	return s, s != "", nil
}

// Format is how one model talks. It never changes, so any number of goroutines
// may use it.
type Format struct {
	template *jinja.Template
	tok      *tokenizer.Tokenizer
	facts    *program.Chat
	names    map[string]string // bos_token and its like
}

// New makes a format of a template's source, a tokenizer, and what the plugin
// says of the family (nil: nothing).
func New(source string, tok *tokenizer.Tokenizer, facts *program.Chat) (*Format, error) {
	t, err := jinja.Compile(source)
	if err != nil {
		return nil, err
	}
	return &Format{t, tok, facts, TokenNames(tok)}, nil
}

// TokenNames are the texts of the tokens that templates call by name: bos_token
// and eos_token, empty where the vocabulary has none.
func TokenNames(tok *tokenizer.Tokenizer) map[string]string {
	names := map[string]string{"bos_token": "", "eos_token": ""}
	if id, ok := tok.BOS(); ok {
		names["bos_token"] = string(tok.Piece(id))
	}
	if id, ok := tok.EOS(); ok {
		names["eos_token"] = string(tok.Piece(id))
	}
	return names
}

// Message is a turn of a conversation.
type Message struct {
	Role      string          `json:"role"` // system, user, assistant or tool
	Content   string          `json:"content"`
	Reasoning string          `json:"reasoning_content,omitempty"` // of an assistant
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`        // of an assistant, in OpenAI's form; arguments as an object
	CallID    string          `json:"tool_call_id,omitempty"`      // of a tool
	Name      string          `json:"name,omitempty"`              // of a tool
}

// Request is what a model is asked.
type Request struct {
	Messages []Message       `json:"messages"`
	Tools    json.RawMessage `json:"tools,omitempty"`           // OpenAI's form
	Thinking *bool           `json:"enable_thinking,omitempty"` // nil: as the template likes
	Continue bool            `json:"-"`                         // don't open the assistant's turn
}

// MarshalJSON gives the variables of a template.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	return json.Marshal(struct {
		plain
		Open bool `json:"add_generation_prompt"`
	}{plain(r), !r.Continue})
}

// Prompt is what a model is asked to continue.
type Prompt struct {
	IDs []int32
	// Thinking says that the prompt ends inside a thought that it has opened.
	Thinking bool
}

// Prompt renders a request. A request that the template refuses gives
// [jinja.Raised], and one to switch off what can't be a plain error.
func (f *Format) Prompt(ctx context.Context, r Request) (Prompt, error) {
	if r.Thinking != nil && !*r.Thinking && f.facts.GetThinkOpen() != "" && !f.facts.GetThinkingOptional() {
		return Prompt{}, errors.New("this model always thinks, its thinking can't be switched off")
	}
	b, err := json.Marshal(r)
	if err != nil {
		return Prompt{}, err
	}
	return f.Render(ctx, b)
}

// Render is Prompt for the JSON object of a request: the variables of the
// template, messages and tools among them.
func (f *Format) Render(ctx context.Context, request []byte) (Prompt, error) {
	pieces, err := Pieces(ctx, f.template, request, f.names, time.Time{})
	if err != nil {
		return Prompt{}, err
	}
	parts := make([]tokenizer.Part, len(pieces))
	for i, p := range pieces {
		parts[i] = tokenizer.Part{Text: p.Text, Plain: p.Message}
	}
	ids, err := f.tok.EncodePartsContext(ctx, parts)
	if err != nil {
		return Prompt{}, err
	}
	// Most templates begin with bos_token, some leave it to the tokenizer.
	if bos, _ := f.tok.BOS(); f.tok.AddBOS() && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	return Prompt{ids, f.endsThinking(pieces)}, nil
}

// Pieces renders a request by a template.
func Pieces(ctx context.Context, t *jinja.Template, request []byte, names map[string]string, now time.Time) ([]jinja.Piece, error) {
	if len(request) > MaxRequest {
		return nil, fmt.Errorf("have a request of %d bytes, want at most %d", len(request), MaxRequest)
	}
	v, err := jinja.Request(request)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return t.Render(ctx, jinja.Vars{Request: v, Tokens: names, Now: now})
}

// endsThinking says whether the template's own text opens a thought at the end
// and leaves it open. Message text opens and closes nothing.
func (f *Format) endsThinking(pieces []jinja.Piece) bool {
	open, end := f.facts.GetThinkOpen(), f.facts.GetThinkClose()
	if open == "" || len(pieces) == 0 || pieces[len(pieces)-1].Message {
		return false
	}
	tail := pieces[len(pieces)-1].Text
	i := strings.LastIndex(tail, open)
	return i >= 0 && !strings.Contains(tail[i+len(open):], end)
}

// Stops are the tokens that end an answer: the vocabulary's end tokens and the
// family's.
func Stops(tok *tokenizer.Tokenizer, facts *program.Chat) map[int32]bool {
	stop := map[int32]bool{}
	for _, id := range tok.EndTokens() {
		stop[id] = true
	}
	for _, piece := range facts.GetStop() {
		if id, ok := tok.ID(piece); ok {
			stop[id] = true
		}
	}
	return stop
}
