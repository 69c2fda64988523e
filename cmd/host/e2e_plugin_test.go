package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/core/registry"
)

// noDriver is an environment in which Vulkan finds no driver.
var noDriver = []string{"VK_DRIVER_FILES=/no/such.json", "VK_ICD_FILENAMES=/no/such.json"}

func TestPluginList(t *testing.T) {
	t.Parallel()
	r := runHost(t, "", "plugin", "list")
	if want := "lfm2moe 0.1.0 lfm2moe 1 ok "; r.code != 0 || r.stderr != "" || !strings.Contains(oneSpace(r.stdout), want) {
		t.Errorf("have code %d, errors %q, output %q; want %q", r.code, r.stderr, r.stdout, want)
	}
	r = runHost(t, "", "plugin", "list", "--json")
	var rows []pluginRow
	if err := json.Unmarshal([]byte(r.stdout), &rows); err != nil || len(rows) == 0 || rows[0].Status != "ok" || rows[0].Name != "lfm2moe" {
		t.Errorf("have %s, %v", r.stdout, err)
	}
	r = runHost(t, "", "plugin", "list", "--plugin-dev", "faulty="+filepath.Join(install(t), "bin", "faulty"))
	if !strings.Contains(oneSpace(r.stdout), "faulty 0.0.1 faulty 1 ok") || !strings.Contains(r.stderr, "WARNING: plugin faulty runs unchecked") {
		t.Errorf("development plugin: have errors %q, output %q", r.stderr, r.stdout)
	}
}

// TestPluginPlan needs no GPU.
func TestPluginPlan(t *testing.T) {
	t.Parallel()
	plan := func(args ...string) result {
		cmd := command(t, append([]string{"plugin", "plan", tiny}, args...)...)
		cmd.Env = append(cmd.Env, noDriver...)
		return finish(t, cmd, "")
	}
	gpu := plan()
	for _, want := range []string{"model lfm2moe: 8 layers, hidden 256, vocab 4096, context 4096", "experts: 32, top 4, in layers 2-7", "blk.2.attn_output.weight"} {
		if gpu.code != 0 || !strings.Contains(gpu.stdout, want) {
			t.Errorf("have code %d, errors %q, no %q in\n%s", gpu.code, gpu.stderr, want, gpu.stdout)
		}
	}
	if again := plan(); again.stdout != gpu.stdout {
		t.Error("a second run gives another text")
	}
	for _, flag := range []string{"--cpu", "--kv=f32"} {
		if r := plan(flag); r.code != 0 || r.stdout == gpu.stdout {
			t.Errorf("%s: have code %d, errors %q; want 0 and another text", flag, r.code, r.stderr)
		}
	}
	r := plan("--json")
	var x struct {
		Plan             struct{ Model struct{ Architecture string } }
		Weights, Records []json.RawMessage
		Program          struct{ Sections []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(r.stdout), &x); err != nil || x.Plan.Model.Architecture != "lfm2moe" || len(x.Weights) == 0 || len(x.Records) != 6 || len(x.Program.Sections) == 0 {
		t.Errorf("--json: have %+v, %v", x, err)
	}
}

// faultyInstall is a folder whose registry says that the program at bin/it, a copy of bin/faulty's
// under another name, runs the architecture faulty.
func faultyInstall(t *testing.T, as, version string) (dir, program string) {
	t.Helper()
	dir = t.TempDir()
	text := `plugins:
  - {name: faulty, version: 0.0.1, architectures: [faulty], protocol: ` + version + `, command: ` + as + `}
files: []
`
	if err := os.WriteFile(filepath.Join(dir, registry.FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, as)
	if err := os.Link(filepath.Join(install(t), "bin", "faulty"), program); err != nil {
		t.Fatal(err)
	}
	return dir, program
}

// write replaces a file, which may be a link to another.
func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestBadPlugins: each way in which a plugin may fail the host, with its message.
func TestBadPlugins(t *testing.T) {
	t.Parallel()
	model := gguftest.Edit(t, tiny, func(m *gguftest.Model) { m.Set("general.architecture", "faulty") })
	acting := func(behaviour string) string {
		return gguftest.Edit(t, tiny, func(m *gguftest.Model) {
			m.Set("general.architecture", "faulty")
			m.Set("zz.behaviour", behaviour) // the plugin does what the last key says
		})
	}
	for name, c := range map[string]struct {
		as       string                          // the program's name, which makes it behave
		protocol string                          // by the registry; empty is 1
		before   func(t *testing.T, path string) // its locking
		after    func(t *testing.T, path string)
		model    string
		wants    []string
	}{
		"missing":        {after: func(t *testing.T, p string) { os.Remove(p) }, wants: []string{"is not there: build it (make build)"}},
		"not locked":     {before: func(t *testing.T, p string) { os.Remove(p) }, after: func(t *testing.T, p string) { write(t, p, "#!/bin/sh\n", 0o755) }, wants: []string{"registry.lock.yaml has no entry for it", "--plugin-dev faulty"}},
		"not executable": {before: func(t *testing.T, p string) { write(t, p, "#!/bin/sh\n", 0o644) }, wants: []string{"is not executable"}},
		"other machine": {before: func(t *testing.T, p string) {
			write(t, p, "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 9)+"\x02\x00\xf3\x00"+strings.Repeat("\x00", 99), 0o755)
		}, wants: []string{"is a program for another machine: have ELF riscv64"}},
		"no program":                            {before: func(t *testing.T, p string) { write(t, p, "hello, I am a text file", 0o755) }, wants: []string{"is not a program"}},
		"wrong checksum":                        {after: func(t *testing.T, p string) { write(t, p, "#!/bin/sh\nexit 0\n", 0o755) }, wants: []string{"is not the file that was locked"}},
		"exits early":                           {as: "exit-early", wants: []string{"exited at its start (exit code 7)"}},
		"garbage":                               {as: "garbage", wants: []string{"instead of the handshake"}},
		"hangs":                                 {as: "silent", wants: []string{"did not answer within 10s of its start"}},
		"newer protocol":                        {as: "protocol-2", wants: []string{"speaks protocol 2, the host speaks [1]"}},
		"only a newer protocol by the registry": {protocol: "2-3", wants: []string{"speaks protocol [2 3] by the registry", "the host speaks [1]"}},
		"another name":                          {as: "another", wants: []string{`calls itself "another"`}},
		"refuses":                               {model: acting("refuse"), wants: []string{"key fake.a: have 1, want 2"}},
		"panics":                                {model: acting("panic"), wants: []string{"plugin faulty: ", "index out of range"}},
		"dies":                                  {model: acting("exit"), wants: []string{"ended during Plan (exit code 3)"}},
		"invalid plan":                          {model: acting("log"), wants: []string{"returned an invalid plan; please report it to the plugin's author"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.as == "" {
				c.as = "it"
			}
			if c.protocol == "" {
				c.protocol = "1"
			}
			if c.model == "" {
				c.model = model
			}
			dir, program := faultyInstall(t, c.as, c.protocol)
			if c.before != nil {
				c.before(t, program)
			}
			path := filepath.Join(dir, registry.FileName)
			if err := registry.Lock(path); err != nil {
				t.Fatal(err)
			}
			if c.after != nil {
				c.after(t, program)
			}
			runHost(t, "", "plugin", "plan", c.model, "--registry", path).fails(t, append(c.wants, "host: "+c.model+": ", "faulty")...)
		})
	}
}

// TestPluginDev: an unlocked plugin runs by name only, with a warning.
func TestPluginDev(t *testing.T) {
	t.Parallel()
	dir, program := faultyInstall(t, "it", "1")
	path := filepath.Join(dir, registry.FileName)
	model := gguftest.Edit(t, tiny, func(m *gguftest.Model) { m.Set("general.architecture", "faulty") })
	for _, args := range [][]string{
		{"--registry", path, "--plugin-dev", "faulty"},
		{"--registry", path, "--plugin-dev", "faulty=" + program},
		{"--plugin-dev", "faulty=" + program},
	} {
		r := runHost(t, "", append([]string{"plugin", "plan", model}, args...)...)
		r.fails(t, "WARNING: plugin faulty runs unchecked: "+program, "returned an invalid plan") // so it was asked
	}
	runHost(t, "", "plugin", "plan", model, "--plugin-dev", "faulty").fails(t, "has no such plugin: give its program as faulty=PATH")
	// One that runs something else is passed over.
	r := runHost(t, "", "plugin", "plan", tiny, "--plugin-dev", "faulty="+program)
	if r.code != 0 || !strings.HasPrefix(r.stdout, "model lfm2moe") {
		t.Errorf("have code %d, errors %q, output %.60q; want the locked plugin's plan", r.code, r.stderr, r.stdout)
	}
}
