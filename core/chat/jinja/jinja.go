// Package jinja renders chat templates as Python's Jinja does in Hugging Face's
// apply_chat_template: sandboxed, with trim_blocks, lstrip_blocks and loop
// controls. Templates come with model files, so they are not trusted: size,
// nesting, time and memory of a rendering are bounded. What is rendered says of
// each character whether it is the template's or came with the request.
//
// Parsing of statements, scopes and control flow are those of
// github.com/ardanlabs/jinja. That engine has no limits, and its operators take
// what Python refuses, so a template is translated first: its whitespace is cut
// here, and every expression becomes names, literals and filters of this
// package (compile.go, expr.go). Start at [Compile] and [Template.Render].
package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	engine "github.com/ardanlabs/jinja"
)

// Template is a compiled template. It never changes, so any number of
// goroutines may use it.
type Template struct {
	compiled  *engine.Template
	constants map[string]engine.Value
}

// Compile reads a template. Errors name the line. A template may have 1 MiB,
// and 100 brackets or statements inside one another.
func Compile(source string) (*Template, error) {
	t, err := compile(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return t, nil
}

// Vars are what a template is rendered with.
type Vars struct {
	Request Value             // a dict: messages, tools and what else the request has
	Tokens  map[string]string // texts of the model's own, such as bos_token; they win over the request
	Now     time.Time         // of strftime_now; zero is the time of the call
}

// Raised is what a template says with raise_exception: it refuses the request.
type Raised struct{ Message string }

func (r Raised) Error() string { return r.Message }

// The most that one rendering may do.
const (
	maxSteps  = 20_000_000       // operations and turns of loops
	maxCalls  = 200              // macros inside one another
	maxOutput = 64 << 20         // bytes, of the text and all values made on the way, beside 100 times the request's
	maxTime   = 30 * time.Second // beside what the context allows
)

// Render gives the text. It stops with ctx, and by itself when the template
// takes more than 30 seconds, 20,000,000 operations, or memory of 64 MiB and a
// hundred times the request. Error is Raised where the template refuses the
// request itself.
func (t *Template) Render(ctx context.Context, vars Vars) ([]Piece, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	r := &run{ctx: ctx, now: vars.Now, memory: maxOutput + 100*vars.Request.size, namespaces: map[*engine.Dict]bool{}, library: library}
	if r.now.IsZero() {
		r.now = time.Now()
	}
	data := make(map[string]engine.Value, len(library)+len(t.constants)+16)
	for name, f := range library {
		data[name] = r.callable(name, f)
	}
	if v := vars.Request.v; v.IsDict() {
		d := v.AsDict()
		for _, k := range d.Keys {
			data["v_"+plain(k)] = d.Data[k]
		}
	}
	for name, text := range vars.Tokens {
		data["v_"+name] = engine.NewString(strings.ToValidUTF8(text, "\uFFFD"))
	}
	for name, v := range t.constants {
		data[name] = v
	}
	text, err := t.compiled.RenderValues(data)
	var raised Raised
	if errors.As(err, &raised) {
		return nil, raised
	}
	if err != nil {
		return nil, fmt.Errorf("chat template: %s", plain(err.Error()))
	}
	return pieces(text), nil
}

// run is one rendering: what it may still do.
type run struct {
	ctx        context.Context
	now        time.Time
	steps      int
	memory     int
	checked    int // work since the last look at the time
	calls      int
	library    map[string]function
	namespaces map[*engine.Dict]bool
}

// arguments of a function of ours. The first is what a filter is applied to.
type arguments struct {
	list  []engine.Value
	named map[string]engine.Value
}

// function is a function, filter or operator that templates can reach.
type function func(r *run, a arguments) (engine.Value, error)

// callable makes a function known to the engine; each call is a step.
func (r *run) callable(name string, f function) engine.Value {
	return engine.NewCallable(name, func(args []engine.Value, named map[string]engine.Value) (engine.Value, error) {
		if r.steps++; r.steps > maxSteps {
			return engine.Undefined(), fmt.Errorf("have more than %d operations, want fewer", maxSteps)
		}
		return r.apply(f, arguments{args, named})
	})
}

// apply calls a function. That it looks at all of each argument is noted here.
func (r *run) apply(f function, a arguments) (engine.Value, error) {
	n := 64
	for _, v := range a.list {
		n += extent(v)
	}
	for _, v := range a.named {
		n += extent(v)
	}
	if err := r.work(n); err != nil {
		return undefined, err
	}
	return f(r, a)
}

// extent is about how many bytes one look at all of a value takes, less what lies in a list or dict.
func extent(v engine.Value) int {
	switch {
	case v.IsString():
		return len(v.AsString())
	case v.IsList():
		return valueSize * v.AsList().Len()
	case v.IsDict():
		return valueSize * v.AsDict().Len()
	}
	return valueSize
}

// work notes that about n bytes are looked at, and now and then looks at the time.
func (r *run) work(n int) error {
	if r.checked += n; r.checked < 1<<18 {
		return nil
	}
	r.checked = 0
	if errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("takes more than %v", maxTime)
	}
	return r.ctx.Err()
}

// spend notes that n bytes are about to be made.
func (r *run) spend(n int) error {
	if n < 0 || n > r.memory {
		return errors.New("takes too much memory")
	}
	r.memory -= n
	return r.work(n)
}

// text is a string value.
func (r *run) text(s string) (engine.Value, error) {
	return engine.NewString(s), r.spend(len(s))
}

// values is a list value.
func (r *run) values(items []engine.Value) (engine.Value, error) {
	return engine.NewList(items), r.spend(valueSize * len(items))
}

// valueSize is about what a value in a list takes.
const valueSize = 32

// arg is the i-th argument (the filtered value is number 0) or the one of that
// name, or the default.
func (a arguments) arg(i int, name string, otherwise engine.Value) engine.Value {
	if i < len(a.list) {
		return a.list[i]
	}
	if v, ok := a.named["v_"+name]; ok {
		return v
	}
	return otherwise
}

func (a arguments) input() engine.Value { return a.arg(0, "", engine.Undefined()) }
