package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/sluicehost/sluice/core/stream"
)

// warmFlag says whether a start remembers what earlier runs used.
type warmFlag struct {
	NoWarm bool `name:"no-warm" help:"Neither load the experts that the last run of this model used most, in the background, nor remember those of this run."`
}

// warmFile is what is kept of a run: the experts that were on the GPU at its end, those first that were used most. It lies
// in the user's cache folder and is no more than a hint: one that is damaged or of another model is passed over.
type warmFile struct {
	Format  int      `json:"format"`
	Experts [][2]int `json:"experts"` // layer and expert
}

const (
	warmFormat = 1
	maxWarm    = 16 << 20 // bytes
)

// warming is the loading under way.
type warming struct {
	log  hclog.Logger
	path string
	stop context.CancelFunc
	done chan struct{}
}

// warm begins to load the experts that the last run used.
func (l *loaded) warm(a *app, f warmFlag) {
	if f.NoWarm {
		return
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		a.log.Debug("no warm start", "why", err)
		return
	}
	w := &warming{log: a.log, path: filepath.Join(cache, "sluice", "experts", l.sum+".json"), done: make(chan struct{})}
	keys, err := readWarm(w.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.log.Debug("no warm start", "file", w.path, "why", err)
	}
	ctx, stop := context.WithCancel(a.ctx)
	w.stop, l.warming = stop, w
	go func() {
		defer close(w.done)
		if err := l.model.Fill(ctx, keys); err != nil && ctx.Err() == nil {
			a.log.Debug("warm start ended", "why", err) // what a token needs it reads again, and fails where that fails
		}
	}()
}

// readWarm reads a list of experts.
func readWarm(path string) ([]stream.Key, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would block, a device never end
		err = fmt.Errorf("have a %s, want a plain file", info.Mode().Type())
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxWarm+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxWarm {
		return nil, fmt.Errorf("have more than %s", plural(maxWarm, "byte"))
	}
	var w warmFile
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	if w.Format != warmFormat {
		return nil, fmt.Errorf("have format %d, want %d", w.Format, warmFormat)
	}
	keys := make([]stream.Key, len(w.Experts))
	for i, e := range w.Experts {
		keys[i] = stream.Key{Layer: e[0], Expert: e[1]}
	}
	return keys, nil
}

// end stops the loading, and remembers what this run used, if it ran.
func (w *warming) end(l *loaded) {
	if w == nil {
		return
	}
	w.stop()
	<-w.done
	if l.model.Stats().Tokens == 0 {
		return
	}
	f := warmFile{Format: warmFormat}
	for _, k := range l.model.Hot() {
		f.Experts = append(f.Experts, [2]int{k.Layer, k.Expert})
	}
	data, err := json.Marshal(f)
	if err == nil {
		err = replaceFile(w.path, data)
	}
	if err != nil {
		w.log.Debug("the experts that were used are not remembered", "why", err)
	}
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error says more
	}
	return err
}
