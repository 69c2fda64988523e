package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/sluicehost/sluice/core/fetch"
	"github.com/sluicehost/sluice/core/gguf"
)

// ingestSource is a GGUF to ingest, and how it is known whether it has changed.
type ingestSource struct {
	file       *gguf.File
	validators []string
	unchanged  func() error
}

func (s *ingestSource) close() { _ = s.file.Close() }

// openSource opens a file or an address.
func (a *app) openSource(model string) (*ingestSource, error) {
	if isAddress(model) {
		return a.openRemote(model)
	}
	f, err := gguf.Open(model)
	if err != nil {
		return nil, err
	}
	s := &ingestSource{file: f}
	if s.validators, err = times(f); err != nil {
		s.close()
		return nil, err
	}
	s.unchanged = func() error {
		now, err := times(f)
		if err != nil {
			return err
		}
		for i, t := range now {
			if t != s.validators[i] {
				return fmt.Errorf("%s: the file has changed while it was read: begin anew with --force", f.Parts[i].Name)
			}
		}
		return nil
	}
	return s, nil
}

// isAddress says whether a model is an HTTP address rather than a path.
func isAddress(model string) bool {
	scheme, _, ok := strings.Cut(model, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// times are when the parts of a model were last written, as validators.
func times(f *gguf.File) ([]string, error) {
	var out []string
	for _, p := range f.Parts {
		info, err := os.Stat(p.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, "mtime "+info.ModTime().UTC().Format(time.RFC3339Nano))
	}
	return out, nil
}

// openRemote opens all parts of a model behind an address.
func (a *app) openRemote(address string) (*ingestSource, error) {
	addresses, err := partAddresses(address)
	if err != nil {
		return nil, err
	}
	s := &ingestSource{}
	var parts []*gguf.File
	for _, part := range addresses {
		r, err := fetch.Open(a.ctx, part, fetch.Options{Retry: func(failure error, wait time.Duration) {
			a.log.Warn("trying again", "in", wait.Round(time.Millisecond), "after", failure)
		}})
		if err != nil {
			return nil, err
		}
		f, err := gguf.Read(r, r.Size(), r.URL())
		if err != nil {
			return nil, err
		}
		parts, s.validators = append(parts, f), append(s.validators, r.Validator())
	}
	if s.file, err = gguf.Join(parts); err != nil {
		return nil, err
	}
	return s, nil
}

// partAddresses are the addresses of all parts of a split model, of which one is given.
func partAddresses(address string) ([]string, error) {
	u, err := url.Parse(address)
	var why *url.Error
	if errors.As(err, &why) {
		err = why.Err // without the address, which may hold a password
	}
	if err != nil {
		return nil, fmt.Errorf("--model: not an address: %w", err)
	}
	base := path.Base(u.Path)
	names, err := gguf.SplitNames(base)
	if err != nil {
		return nil, err
	}
	if len(names) == 1 {
		return []string{address}, nil
	}
	var out []string
	for _, name := range names {
		part := *u
		part.Path, part.RawPath = strings.TrimSuffix(u.Path, base)+name, ""
		out = append(out, part.String())
	}
	return out, nil
}
