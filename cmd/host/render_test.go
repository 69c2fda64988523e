package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/sdk/program"
)

// inProcess runs the program with these arguments and this input.
func inProcess(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

func TestRender(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jinja")
	const source = `{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ tools | tojson if tools }}` +
		`{{ raise_exception('no messages') if not messages }}{{ strftime_now('%Y') if year }}`
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	in := strings.Join([]string{
		`{"id":7,"context":{"messages":[{"role":"user","content":"<b> é"}],"tools":[{"z":1,"a":[]}]},"tokens":{"bos_token":"<s>"}}`,
		`{"id":"x","name":"a golden case","text":"...","context":{"messages":[]}}`,
		`{"context":{"messages":[],"year":true}, "tokens":{}}`,
		`{"context":{"year":true,"messages":[{}]}}`,
		`{"contxt":{}}`, `{"id":1}`, `{"context":[]}`, `{"context":{"messages":[{"role":`,
	}, "\n")
	r := inProcess(t, in, "render", "--template", file, "--now", "1999-12-31T00:00:00Z")
	want := `{"id":7,"text":"<s>user:<b> é;[{\"z\": 1, \"a\": []}]"}
{"id":"x","error":"no messages"}
{"error":"no messages"}
{"text":":;1999"}
{"error":"unknown field \"contxt\", want one of id, context, tokens, name, text, error"}
{"id":1,"error":"have no \"context\", want an object with the variables of the template"}
{"error":"have no \"context\", want an object with the variables of the template"}
{"error":"the JSON object is cut off"}
`
	if r.stdout != want || r.code != 1 || !strings.Contains(r.stderr, "6 of 8 lines failed") {
		t.Errorf("have code %d, errors %q and\n%s\nwant 1 and\n%s", r.code, r.stderr, r.stdout, want)
	}
}

// TestRenderModel: a model's own template, with the texts of its own tokens.
func TestRenderModel(t *testing.T) {
	r := inProcess(t, `{"context":{"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":true}}`, "render", "--model", tiny)
	if want := `{"text":"<|startoftext|><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>"}` + "\n"; r.stdout != want || r.code != 0 {
		t.Errorf("have code %d, %q, errors %q; want 0 and %q", r.code, r.stdout, r.stderr, want)
	}
}

// TestRunChat: what a chat prints is what the model says to the rendered prompt,
// reasoning apart from the answer.
func TestRunChat(t *testing.T) {
	needGPU(t)
	rendered := inProcess(t, `{"context":{"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":true}}`, "render", "--model", tiny)
	var prompt struct{ Text string }
	if err := json.Unmarshal([]byte(rendered.stdout), &prompt); err != nil {
		t.Fatal(err)
	}
	raw := runHost(t, "", "run", "--model", tiny, "--raw", "--prompt", strings.TrimPrefix(prompt.Text, "<|startoftext|>"), "-n", "9", "--kv", "f32")
	split := chat.NewSplit(&program.Chat{ThinkOpen: "<think>", ThinkClose: "</think>"}, true)
	var answer, thought string
	for _, p := range append(split.Push(strings.TrimSuffix(raw.stdout, "\n")), split.Flush()...) {
		if p.Thought {
			thought += p.Text
		} else {
			answer += p.Text
		}
	}
	if thought != "" {
		thought += "\n\n"
	}
	r := runHost(t, "", "run", "--model", tiny, "--prompt", "Hi", "-n", "9", "--kv", "f32")
	if r.code != 0 || r.stdout != answer+"\n" || !strings.HasPrefix(r.stderr, thought+"host: prompt") || answer+thought == "" {
		t.Errorf("have code %d, answer %q, errors %q; want 0, %q and %q", r.code, r.stdout, r.stderr, answer, thought)
	}
	runHost(t, "", "run", "--model", tiny, "--prompt", "Hi", "--think", "off").fails(t, "this model always thinks")
}

// TestChatAnswer: where reasoning and answer go.
func TestChatAnswer(t *testing.T) {
	parts := []chat.Part{{Text: "hm", Thought: true}, {Text: " so", Thought: true}, {Text: "Yes"}, {Text: "."}}
	for name, c := range map[string]struct {
		dim, hide  bool
		out, other string
	}{
		"plain":    {out: "Yes.", other: "hm so\n\n"},
		"terminal": {dim: true, out: "Yes.", other: "\x1b[2mhm so\x1b[0m\n\n"},
		"hidden":   {hide: true, out: "Yes."},
	} {
		var out, other bytes.Buffer
		a := &chatAnswer{out: &out, thoughts: &other, dim: c.dim}
		if c.hide {
			a.thoughts = nil
		}
		for _, p := range parts {
			if err := a.print([]chat.Part{p}); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != c.out || other.String() != c.other || string(a.text) != "Yes." || string(a.reasoning) != "hm so" {
			t.Errorf("%s: have %q and %q, want %q and %q", name, &out, &other, c.out, c.other)
		}
	}
}

// TestRenderTemplates: a template that is none is refused by naming its file.
func TestRenderTemplates(t *testing.T) {
	dir := t.TempDir()
	for source, want := range map[string]string{"": "have an empty file", "{% if x %}": "chat template: line 1: have no end", strings.Repeat("x", maxTemplateFile+1): "have more than"} {
		file := filepath.Join(dir, "t.jinja")
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"render", "--template", file}, {"render", "--template", file, "--model", tiny}} {
			r := inProcess(t, "", args...)
			if r.code != 1 || !strings.Contains(r.stderr, "--template: "+file+": "+want) {
				t.Errorf("%v: have code %d, %s, want %q", args, r.code, r.stderr, want)
			}
		}
	}
	r := inProcess(t, `{"context":{"x":1e999}}`+"\n"+`{"tokens":[]}`, "render", "--model", tiny)
	if want := `{"error":"request: have the number 1e999, want one that 64 bits hold"}
{"error":"field \"tokens\": have a JSON array, want an object of strings"}
`; r.code != 1 || r.stdout != want {
		t.Errorf("have code %d and\n%s\nwant\n%s", r.code, r.stdout, want)
	}
}
