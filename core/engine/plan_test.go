package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

// A context or chunk that is too much for a GPU is not called the plugin's fault, and what
// no context or chunk mends is.
func TestWhoseFault(t *testing.T) {
	h := store.Header(toyFile(t, seedOf(t)))
	for name, c := range map[string]struct {
		binding uint64
		groups  uint32
		o       engine.Options
		want    string
	}{
		"fits":    {1 << 20, 65535, engine.Options{Chunk: 64}, ""},
		"chunk":   {37 << 10, 65535, engine.Options{Chunk: 256}, "a context of 300 tokens and a chunk of 256 are too much for this GPU: choose a smaller --ctx or --chunk: "},
		"context": {37 << 10, 65535, engine.Options{Chunk: 1, KVF32: true}, "a chunk of 1 are too much for this GPU"},
		"plugin":  {1 << 20, 1, engine.Options{Chunk: 1, Context: 1}, "report it to the plugin's author"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := &program.Limits{MaxBinding: c.binding, MaxBindings: 8, MaxInvocations: 256, WorkgroupBytes: 16 << 10, MaxGroups: c.groups}
			_, err := engine.Ask(context.Background(), h, planner{}, program.Bounds{Limits: limits, StorageAlign: 256, UniformAlign: 256, MaxBuffer: 1 << 28}, c.o)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("have error %.600v\nwant %s", err, c.want)
			}
		})
	}
}
