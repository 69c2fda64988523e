package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpeedOptions: in every architecture the options that are about speed change no bit of the logits, token by token in
// the smallest pool, where nearly every layer waits for an expert, in one between, and in the full one.
func TestSpeedOptions(t *testing.T) {
	t.Parallel()
	needGPU(t)
	for _, arch := range goldenArchitectures {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			model := "../../testdata/models/tiny-" + arch + ".gguf"
			refs, err := readRefs("../../testdata/models/golden/"+arch+".json", nil)
			if err != nil {
				t.Fatal(err)
			}
			prompt := refs.Cases[0].Tokens
			input := fmt.Sprintf(`{"tokens":%s,"top":1000000}`+"\n", strings.ReplaceAll(fmt.Sprint(prompt[:min(len(prompt), 14)]), " ", ","))
			base := []string{"eval", "--kv", "f32", "--chunk", "1", "--model", model}
			ram := []string{"--ram-cache", "1MB", "--direct", "on"} // takes staging memory
			least, keeping := smallestBudget(t, base[0], base[1:]...), smallestBudget(t, base[0], append(ram, base[1:]...)...)
			base = append(base, "--gpu-budget", fmt.Sprint(least))
			var want string
			for i, more := range [][]string{
				{"--routing", "wait"}, {"--lookahead", "0"}, {"--lookahead", "3", "--evict", "lru", "--readers", "2"}, {"--gpu-budget", "max"},
				append(ram, "--gpu-budget", fmt.Sprint(keeping), "--evict", "freq:64"),
				{"--gpu-budget", fmt.Sprint(least + least/8)},
			} {
				r := runHost(t, input, append(base[:len(base):len(base)], more...)...)
				if r.code != 0 {
					t.Fatalf("%v: have code %d, errors %s", more, r.code, r.stderr)
				}
				if i == 0 {
					want = r.stdout
				} else if r.stdout != want {
					t.Errorf("%v: the logits are not those of --routing wait, to the bit", more)
				}
			}
		})
	}
}

// TestResidentTokens: in every architecture a run in which all experts have come makes the tokens of one that waits for each layer's
// routing, with one readback for each.
func TestResidentTokens(t *testing.T) {
	t.Parallel()
	needGPU(t)
	for _, arch := range goldenArchitectures {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			run := func(more ...string) (string, *statsReport) {
				file := filepath.Join(t.TempDir(), "stats.json")
				args := []string{"run", "--model", "../../testdata/models/tiny-" + arch + ".gguf", "--raw", "--prompt", "In the beginning", "-n", "40", "--temp", "0.8", "--seed", "3", "--ctx", "256", "--stats-json", file}
				cmd := command(t, append(args, more...)...)
				cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir())
				r := finish(t, cmd, "")
				if r.code != 0 {
					t.Fatalf("%v: have code %d, errors %s", more, r.code, r.stderr)
				}
				return r.stdout, readStats(t, file)
			}
			have, s := run("--gpu-budget", "max") // which fills all slots in the background
			want, waited := run("--gpu-budget", fmt.Sprint(smallestBudget(t, "run", "--model", "../../testdata/models/tiny-"+arch+".gguf", "--temp", "0.8", "--ctx", "256", "--routing", "wait")), "--routing", "wait", "--lookahead", "0", "--no-warm")
			if have != want {
				t.Errorf("have %q, want %q", have, want)
			}
			if x := s.PerToken; s.Experts.Resident != s.Experts.All || x.Readbacks > waited.PerToken.Readbacks/2 {
				t.Errorf("have %d of %d experts, %.2f readbacks a token, want all of them, and at most half of the %.2f of waiting", s.Experts.Resident, s.Experts.All, x.Readbacks, waited.PerToken.Readbacks)
			}
		})
	}
}
