package main

import (
	"testing"

	"github.com/sluicehost/sluice/core/gguf/gguftest"
)

// TestSplitModel: a model in two parts, cut within a layer, says what it says in one, whichever part is named.
func TestSplitModel(t *testing.T) {
	t.Parallel()
	needGPU(t)
	const whole = "../../testdata/models/tiny-bailingmoe3.gguf"
	m, err := gguftest.Load(whole)
	if err != nil {
		t.Fatal(err)
	}
	half := len(m.Tensors)/2 + 1
	parts, err := gguftest.WriteParts(t.TempDir(), "tiny", m.Split(half, len(m.Tensors)-half))
	if err != nil {
		t.Fatal(err)
	}
	const input = `{"tokens":[5,17,99,1000,4000,3],"top":1000000}` + "\n"
	want := runHost(t, input, "eval", "--kv", "f32", "--model", whole)
	if want.code != 0 {
		t.Fatalf("have code %d, errors %s", want.code, want.stderr)
	}
	for _, p := range parts {
		if have := runHost(t, input, "eval", "--kv", "f32", "--model", p); have.code != 0 || have.stdout != want.stdout {
			t.Errorf("%s: have code %d, other logits: %v, errors %s", p, have.code, have.stdout != want.stdout, have.stderr)
		}
	}
}
