package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/fetch"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

type ingestCmd struct {
	Model string `short:"m" required:"" placeholder:"FILE|URL" help:"GGUF file, or its http(s) address; any part of a split model will do."`
	Store string `placeholder:"DIR" help:"The store's folder, which is made. Default: one named after the file and a checksum of its header, in $$SLUICE_STORES or sluice/stores in the user's cache folder."`
	Force bool   `help:"Begin anew, also where the folder has the store of another file."`
	registryFlags
}

// Help is the command's long help.
func (ingestCmd) Help() string {
	return `Packs a model into a store: a folder from which run, eval, bench and verify (--store) load it without the GGUF. Its experts lie there as the GPU takes them, each in one piece. The file's plugin says what belongs to an expert; no GPU is needed.

What was interrupted, by Ctrl-C, a crash or a full disk, goes on when the same command is given again. The store's folder is printed on standard output in the end.`
}

// Run makes the store.
func (c *ingestCmd) Run(a *app) error {
	start := time.Now()
	src, err := a.openSource(c.Model)
	if err != nil {
		return err
	}
	defer src.close()
	plan, err := a.planOf(src.file, c.Model, c.registryFlags)
	if err != nil {
		return err
	}
	in, err := store.NewIngest(src.file, plan)
	if err != nil {
		return err
	}
	dir := c.Store
	if dir == "" {
		if dir, err = defaultStore(in.Name()); err != nil {
			return err
		}
	}
	shown := a.transfer("ingesting")
	done, err := in.Run(a.ctx, dir, store.IngestOptions{Force: c.Force, Validators: src.validators, Unchanged: src.unchanged, Progress: shown.update})
	shown.done()
	switch {
	case a.ctx.Err() != nil:
		fmt.Fprintf(a.err, "host: interrupted; the same command goes on from here: %s\n", dir)
		return a.ctx.Err()
	case errors.Is(err, fetch.ErrChanged):
		return fmt.Errorf("%w: begin anew with --force", err)
	case err != nil:
		return err
	case done.Already:
		fmt.Fprintln(a.err, "host: the store is there already")
	default:
		fmt.Fprintf(a.err, "host: %s\n", ingested(done, time.Since(start)))
	}
	_, err = fmt.Fprintln(a.out, dir)
	return err
}

// ingested is what was done, for people.
func ingested(done store.Ingested, took time.Duration) string {
	text := fmt.Sprintf("%s in %v", size(uint64(done.Size)), took.Round(10*time.Millisecond))
	if s := took.Seconds(); s > 0 {
		text += fmt.Sprintf(" (%s/s)", size(uint64(float64(done.Size-done.Resumed)/s)))
	}
	if done.Resumed > 0 {
		text += fmt.Sprintf(", %s of it from before", size(uint64(done.Resumed)))
	}
	return text
}

// planOf asks a file's plugin for its plan.
func (a *app) planOf(f *gguf.File, path string, r registryFlags) (*program.Plan, error) {
	process, err := a.pluginFor(f, path, r)
	if err != nil {
		return nil, err
	}
	h := store.Header(f)
	plan, err := process.Plan(a.ctx, h)
	if closed := process.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := program.ValidatePlan(h, plan); err != nil {
		return nil, fmt.Errorf("%s: the plugin for %q returned an invalid plan; please report it to the plugin's author: %w", path, plan.GetModel().GetArchitecture(), err)
	}
	return plan, nil
}
