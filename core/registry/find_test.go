package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindOrder(t *testing.T) {
	dir := t.TempDir()
	make := func(parts ...string) string {
		return write(t, filepath.Join(append([]string{dir}, parts...)...), "plugins: []\n")
	}
	flag, env := make("flag.yaml"), make("env.yaml")
	beside, above := make("top", "bin", FileName), make("top", FileName)
	user := make("config", "sluice", FileName)
	pl := places{flag: flag, env: env, exe: filepath.Join(dir, "top", "bin", "host"), config: filepath.Join(dir, "config")}

	// Each step takes the place that won away; the next one must win then.
	for i, step := range []struct {
		want string
		drop func() error
	}{
		{flag, func() error { pl.flag = ""; return nil }},
		{env, func() error { pl.env = ""; return nil }},
		{beside, func() error { return os.Remove(beside) }},
		{above, func() error { return os.Remove(above) }},
		{user, func() error { return os.Remove(user) }},
	} {
		got, tried, err := pl.find()
		if err != nil || got != step.want {
			t.Fatalf("step %d: have %q, %v, want %q", i, got, err, step.want)
		}
		if last := tried[len(tried)-1]; !strings.HasSuffix(last, ": "+step.want) {
			t.Errorf("step %d: tried ends with %q, want %q", i, last, step.want)
		}
		if err := step.drop(); err != nil {
			t.Fatal(err)
		}
	}
	_, tried, err := pl.find()
	if err == nil {
		t.Fatal("have no error where there is no registry")
	}
	for _, want := range append(tried, "the flag", Env, beside, above, user) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("have %v\nwant %q in it", err, want)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "bin", FileName), "plugins: []\n")
	exe := filepath.Join(dir, "bin", "host")
	none := filepath.Join(dir, "none.yaml")
	notDir := filepath.Join(write(t, filepath.Join(dir, "file"), ""), "x")
	unknown := errors.New("no home")
	for name, c := range map[string]struct {
		pl   places
		want []string // parts of the error
	}{
		"flag names nothing":   {places{flag: none, env: good, exe: exe}, []string{"the flag names " + none}},
		"env names nothing":    {places{env: none, exe: exe}, []string{Env + " names " + none}},
		"below a file":         {places{exe: filepath.Join(notDir, "host")}, []string{"beside the binary", "not a directory"}},
		"nothing is known":     {places{exeErr: unknown, configErr: unknown}, []string{"above the binary: no home", "user config folder: no home"}},
		"binary is not known":  {places{exeErr: unknown, config: dir}, []string{filepath.Join(dir, "sluice", FileName)}},
		"config is not known":  {places{exe: filepath.Join(dir, "a", "b", "host"), configErr: unknown}, []string{filepath.Join(dir, "a", FileName)}},
		"relative flag is abs": {places{flag: "no/such.yaml"}, []string{string(filepath.Separator) + filepath.Join("no", "such.yaml")}},
	} {
		path, tried, err := c.pl.find()
		if err == nil || path != "" || len(tried) == 0 {
			t.Errorf("%s: have %q, tried %q, error %v, want an error", name, path, tried, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: have %v\nwant %q in it", name, err, want)
			}
		}
	}
}

// Find itself takes flag, environment and config folder from the process.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a.yaml"), "")
	b := write(t, filepath.Join(dir, "b.yaml"), "")
	t.Setenv(Env, b)
	if got, _, err := Find(a); err != nil || got != a {
		t.Errorf("flag: have %q, %v, want %q", got, err, a)
	}
	if got, _, err := Find(""); err != nil || got != b {
		t.Errorf("environment: have %q, %v, want %q", got, err, b)
	}
	t.Setenv(Env, "")
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	user := write(t, filepath.Join(config, "sluice", FileName), "")
	if got, tried, err := Find(""); err != nil || got != user {
		t.Errorf("user config folder: have %q, %v, want %q; tried %q", got, err, user, tried)
	}
}
