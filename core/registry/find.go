package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FileName is the registry's name in the folders where [Find] looks.
const FileName = "registry.yaml"

// Env is the environment variable that names a registry file.
const Env = "SLUICE_REGISTRY"

// Find returns the absolute path of the registry to load, and every place it
// looked at up to there. The first of these that is set or exists wins: flag
// (the command line's; empty = not given), the environment variable [Env],
// registry.yaml beside the running binary, in the parent of that folder, and
// in the folder sluice of the user's config folder. A file named by flag or
// environment must exist: Find never falls through to another one.
func Find(flag string) (path string, tried []string, err error) {
	pl := places{flag: flag, env: os.Getenv(Env)}
	pl.exe, pl.exeErr = os.Executable()
	if pl.exeErr == nil {
		pl.exe, pl.exeErr = filepath.EvalSymlinks(pl.exe)
	}
	pl.config, pl.configErr = os.UserConfigDir()
	return pl.find()
}

// places is what Find takes from the process, so that tests can set it.
type places struct {
	flag, env         string
	exe, config       string // the binary's path, the user's config folder
	exeErr, configErr error  // why they are not known
}

func (pl places) find() (string, []string, error) {
	for _, named := range [2]struct{ how, path string }{{"the flag", pl.flag}, {"environment " + Env, pl.env}} {
		if named.path == "" {
			continue
		}
		path, err := filepath.Abs(named.path)
		if err != nil {
			return "", []string{named.how + ": " + named.path}, fmt.Errorf("registry: %s: %w", named.how, err)
		}
		tried := []string{named.how + ": " + path}
		if _, err := os.Stat(path); err != nil {
			return "", tried, fmt.Errorf("registry: %s names %s: %w: name a registry file, or leave it out to look in the usual places", named.how, path, reason(err))
		}
		return path, tried, nil
	}
	return pl.search()
}

// search looks in the folders, when neither flag nor environment names a file.
func (pl places) search() (string, []string, error) {
	bin := filepath.Dir(pl.exe)
	folders := []struct {
		how, dir string
		err      error
	}{
		{"beside the binary", bin, pl.exeErr},
		{"above the binary", filepath.Dir(bin), pl.exeErr},
		{"user config folder", filepath.Join(pl.config, "sluice"), pl.configErr},
	}
	tried := []string{"the flag: not given", "environment " + Env + ": not set"}
	for _, f := range folders {
		if f.err != nil {
			tried = append(tried, f.how+": "+f.err.Error())
			continue
		}
		path := filepath.Join(f.dir, FileName)
		tried = append(tried, f.how+": "+path)
		_, err := os.Stat(path)
		if err == nil {
			return path, tried, nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // falling through would hide the one that was meant
			return "", tried, fmt.Errorf("registry: %s: %s: %w", f.how, path, reason(err))
		}
	}
	return "", tried, fmt.Errorf("registry: no %s found: looked at:\n  %s\nname one with the flag or %s", FileName, strings.Join(tried, "\n  "), Env)
}

// reason strips the operation and path from a file error: ours name them.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
