package plugintest

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/program"
)

var update = flag.Bool("update", false, "write golden files anew")

// Text compares a file's plan and program on a GPU, as text to review, with the golden file at path; go test -update writes it.
func Text(t *testing.T, a sdk.Architecture, f *File, path string) {
	t.Helper()
	plan, weights, records, prog := Encode(t, a, f, Devices()["gpu"], false)
	var got bytes.Buffer
	if err := program.Text(&got, plan, weights, records, prog); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the program changed: compare with git diff after go test -update\n%s", got.Bytes())
	}
}

// Devices are the kinds of device that programs must run on, by name: "cpu" (Mesa's CPU driver), "gpu", and "small gpu", one
// with no more than WebGPU promises.
func Devices() map[string]*program.Limits {
	out := map[string]*program.Limits{}
	for _, d := range devices {
		out[d.name] = d.limits
	}
	return out
}

// Refusal is a change that makes a file unfit, and a part of the error that says so.
type Refusal = struct {
	Change func(*File)
	Want   string
}

// Refusals checks that each change of the file that small makes is refused.
func Refusals(t *testing.T, a sdk.Architecture, small func() *File, all map[string]Refusal) {
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			f := small()
			r.Change(f)
			Refused(t, a, f, r.Want)
		})
	}
}
