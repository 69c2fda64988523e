package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicehost/sluice/core/chat"
	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/plugin"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/core/tokenizer"
	"github.com/sluicehost/sluice/sdk/program"
)

// loaded is a model that is ready to make tokens. Its plugin's process is gone.
type loaded struct {
	path     string
	file     *gguf.File // of the model, or what its store has of it
	model    *engine.Model
	session  *engine.Session
	tok      *tokenizer.Tokenizer
	template string // the file's chat template, if it has one
	device   *gpu.Device
	budget   string        // what the GPU budget is, for people
	took     time.Duration // to load
	routes   *recorder     // of the routing; nil for none
	reading  *reading      // of experts
	disk     diskSource    // that they come from
	sum      string        // of the file's header, which tells it from others
	warming  *warming      // nil where nothing is loaded ahead of need
}

// load brings a model up: its header, its plugin, the GPU, its weights. On an error nothing
// is left open. Of o the command sets what is its own; a Top that is more than the GPU can give becomes 0.
func (a *app) load(m modelFlags, r registryFlags, e engineFlags, o engine.Options) (_ *loaded, err error) {
	start := time.Now()
	if err := e.check(); err != nil {
		return nil, err
	}
	f, err := m.open()
	if err != nil {
		return nil, err
	}
	path := f.path
	l, held := &loaded{path: path, file: f.File}, f
	defer func() {
		if err != nil {
			if held != nil {
				_ = held.Close() // the first error says more
			}
			_ = l.close()
		}
	}()
	if l.tok, err = tokenizer.New(f.Metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if l.sum, err = headerSum(f.File); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if l.template, _, err = chat.Template(f.Metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	process, err := a.pluginFor(f.File, path, r)
	if err != nil {
		return nil, err
	}
	defer func() {
		if process != nil {
			_ = process.Close()
		}
	}()
	if l.device, err = gpu.Open(a.ctx, gpu.Options{Adapter: e.Adapter}); err != nil {
		return nil, err
	}
	a.log.Debug("GPU", "device", l.device.Info().String())
	bytes, why := e.GPUBudget.resolve(a.ctx, l.device)
	l.budget = why
	a.log.Debug("GPU budget", "bytes", bytes, "why", why)
	l.device.SetBudget(bytes) // the engine keeps to it; this holds whatever else might ask

	o = e.options(o, bytes)
	if o.Suppress == nil {
		if o.Suppress, err = suppressed(f.File); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	shown := a.progress("loading")
	open := func(p *program.Plan, weights []*program.Placed, records []*program.PlacedRecord) (store.Source, error) {
		s, err := f.source(p, weights, records)
		if err != nil {
			return nil, err
		}
		held, l.disk = nil, s // the source closes what is held
		var out store.Source
		out, l.reading, err = e.reading(a, s, f.bytes(), records, int(p.GetModel().GetExperts()))
		return out, err
	}
	o.Progress = shown.update
	l.model, err = engine.Load(a.ctx, l.device, store.Header(f.File), process, open, o)
	shown.done()
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", path, err, budgetHint(path, err))
	}
	// From here on nothing is asked of the plugin, so its process goes before the first token.
	pid, closed := process.PID(), process.Close()
	process = nil
	if closed != nil {
		return nil, closed
	}
	a.log.Debug("plugin closed", "pid", pid)
	l.session, err = l.model.NewSession()
	l.took = time.Since(start)
	return l, err
}

// budgetHint says what to do about a budget that is too small; empty where that is not what went wrong.
func budgetHint(path string, err error) string {
	var small *engine.BudgetError
	if !errors.As(err, &small) {
		return ""
	}
	return fmt.Sprintf(": give --gpu-budget %d or more, or see which --ctx, --chunk or --kv fits: host plan --model %s --gpu-budget %d", small.Want(), quoted(path), small.Have)
}

// options are the flags in the engine's terms, beside what a command sets by itself.
func (e engineFlags) options(o engine.Options, budget uint64) engine.Options {
	if o.Top > engine.MaxTop {
		o.Top = 0
	}
	o.Budget, o.Context, o.Chunk, o.KVF32 = budget, e.Ctx, e.Chunk, e.KV == "f32"
	o.Readers, o.Keep = e.Readers, e.RAMCache > 0
	o.Wait, o.Lookahead = e.Routing == "wait", int(e.Lookahead)
	o.Policy = e.Evict.policy()
	return o
}

// pluginFor starts the plugin of a file's general.architecture.
func (a *app) pluginFor(f *gguf.File, path string, r registryFlags) (*plugin.Process, error) {
	architecture, err := architectureOf(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := r.plugins(a)
	if err != nil {
		return nil, err
	}
	process, err := p.start(a, architecture)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return process, nil
}

// architectureOf is the file's general.architecture.
func architectureOf(f *gguf.File) (string, error) {
	const key = "general.architecture"
	v, ok := f.Metadata.Value(key)
	s, isString := v.(string)
	switch {
	case !ok:
		return "", fmt.Errorf("key %s is missing, want the name of an architecture: is this a model?", key)
	case !isString || s == "":
		return "", fmt.Errorf("key %s: have %.80q, want the name of an architecture", key, fmt.Sprint(v))
	}
	return s, nil
}

// fit is fit for a loaded model.
func (l *loaded) fit(less string) string { return fit(l.model.Planned, less) }

// fit says what to do where a context is too small: give less, or more of a context if the
// file allows one.
func fit(m *engine.Planned, less string) string {
	if most := int(m.Plan.Model.Context); m.Context < most {
		return fmt.Sprintf("give %s, or a larger --ctx (at most %d)", less, most)
	}
	return fmt.Sprintf("give %s: more than the file's context_length it can't be", less)
}

// close frees everything.
func (l *loaded) close() error {
	l.warming.end(l)
	errs := []error{l.routes.close()}
	if l.session != nil {
		l.session.Close()
	}
	if l.model != nil {
		errs = append(errs, l.file.Changed())
		errs = append(errs, l.model.Close())
	}
	if l.device != nil {
		errs = append(errs, l.device.Close())
	}
	return errors.Join(errs...)
}

// suppressed are the tokens that the file says must never come out.
func suppressed(f *gguf.File) ([]int32, error) {
	const key = "tokenizer.ggml.suppress_tokens"
	value, ok := f.Metadata.Value(key)
	if !ok {
		return nil, nil
	}
	switch ids := value.(type) {
	case []int32:
		return ids, nil
	case []uint32:
		out := make([]int32, len(ids))
		for i, id := range ids {
			out[i] = int32(min(id, math.MaxInt32))
		}
		return out, nil
	}
	return nil, fmt.Errorf("key %s: have a %T, want an array of token ids", key, value)
}
