package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestSpeedOptions: in every architecture the options that are about speed change no bit of the logits, token by token in
// the smallest pool, where nearly every layer waits for an expert.
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
			base = append(base, "--gpu-budget", fmt.Sprint(smallestBudget(t, base[0], base[1:]...)))
			var want string
			for i, more := range [][]string{
				{"--routing", "wait"}, {"--lookahead", "0"}, {"--lookahead", "3", "--evict", "lru", "--readers", "2"}, {"--gpu-budget", "max"},
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
