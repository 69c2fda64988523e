package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// A trace sees every block's result and everything else, the same ones in all chunk lengths and pools, and
// changes no logits.
func TestTrace(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 8)
	whole := load(t, dev, f, engine.Options{Chunk: 16})
	want := feed(t, session(t, whole), tokens)
	var reference map[string][]float32 // block results of the last token
	for _, o := range []engine.Options{{Chunk: 16}, {Chunk: 16, Budget: smallestOf(t, whole, f, 16)}, {Chunk: 1}, {Chunk: 16, Profile: true}} {
		t.Run(fmt.Sprintf("chunk %d budget %d profile %v", o.Chunk, o.Budget, o.Profile), func(t *testing.T) {
			seen, last := map[string]*engine.Traced{}, 0
			o.Trace = &engine.Trace{Wants: func(*engine.Traced) bool { return true }, Take: func(v *engine.Traced) error {
				key := fmt.Sprint(v.Number, v.Label, v.Name)
				if v.Number > 0 && v.Number < last && o.Budget == 0 { // waves repeat their numbers
					t.Errorf("%s comes after number %d", key, last)
				}
				if last = v.Number; len(v.Data) != v.Rows*v.Width {
					t.Errorf("%s: have %d numbers, want %d x %d", key, len(v.Data), v.Rows, v.Width)
				}
				x := *v
				x.Data = slices.Clone(v.Data)
				if v.Number == 0 {
					clear(seen) // a new step
				}
				seen[key] = &x
				return nil
			}}
			if o.Budget > 0 {
				o.Budget += 64 << 10 // the trace's own memory
			}
			m := load(t, dev, f, o)
			got := feed(t, session(t, m), tokens)
			if o.Chunk == 16 && !equalRows(got, want) {
				t.Error("the trace changes logits")
			}
			results := resultsOf(t, seen)
			if reference == nil {
				reference = results
			}
			for layer, have := range results {
				for i, x := range have {
					if math.Abs(float64(x-reference[layer][i])) > 1e-4 {
						t.Errorf("layer %s, value %d: have %v, want %v", layer, i, x, reference[layer][i])
						break
					}
				}
			}
			checkEnds(t, seen, got, len(tokens))
		})
	}
}

// resultsOf gives the last row of each block's result.
func resultsOf(t *testing.T, seen map[string]*engine.Traced) map[string][]float32 {
	t.Helper()
	out := map[string][]float32{}
	for _, v := range seen {
		if v.Layer >= 0 {
			out[fmt.Sprint(v.Layer)] = v.Data[(v.Rows-1)*v.Width:]
		}
	}
	if len(out) != 3 {
		t.Fatalf("have results of %d blocks, want 3", len(out))
	}
	return out
}

// checkEnds looks at the values of the last step whose contents are known: input, picks and logits.
func checkEnds(t *testing.T, seen map[string]*engine.Traced, logits [][]float32, tokens int) {
	t.Helper()
	found := 0
	for key, v := range seen {
		switch {
		case v.Label == "input":
			found++
			if v.Number != 0 || v.Width != toyHidden || v.Pos+v.Tokens != tokens {
				t.Errorf("input: have %+v", *v)
			}
		case v.Name == "picks":
			found++
			for _, e := range v.Data {
				if e != float32(int(e)) || e < 0 || e >= toyExperts {
					t.Errorf("%s: have pick %v", key, e)
				}
			}
		case v.Width == toyVocab:
			found++
			if !slices.Equal(v.Data, slices.Concat(logits[tokens-v.Rows:]...)) {
				t.Errorf("%s: the logits differ from those of the step", key)
			}
		}
	}
	if found < 4 {
		t.Errorf("have %d values of known contents, want input, two layers' picks and logits", found)
	}
}

// What is not wanted is not read; the readback is in the budget; an error of Take ends the step.
func TestTraceWants(t *testing.T) {
	dev, seed := gputest.Open(t), seedOf(t)
	f, tokens := toyFile(t, seed), tokensOf(seed, 5)
	stop := errors.New("enough")
	var fail bool
	taken, before := 0, dev.Bytes()[gpu.Staging]
	m := load(t, dev, f, engine.Options{Trace: &engine.Trace{
		Wants: func(v *engine.Traced) bool { return v.Layer == 1 },
		Take: func(v *engine.Traced) error {
			if taken++; fail {
				return stop
			}
			return nil
		},
	}})
	s := session(t, m)
	feed(t, s, tokens)
	if have := dev.Bytes()[gpu.Staging] - before; have != m.Budget.Staging {
		t.Errorf("have %d bytes of staging, predicted %d", have, m.Budget.Staging)
	}
	if taken != 1 {
		t.Errorf("have %d values, want 1", taken)
	}
	fail = true
	if err := s.Feed(context.Background(), tokens, 1, nil); !errors.Is(err, stop) {
		t.Errorf("have %v, want the error of Take", err)
	}
}
