package synth

import (
	"math"
	"testing"
)

func tinyTopics(t *testing.T, vocab, dwell int) *topics {
	t.Helper()
	special := make([]bool, vocab)
	special[3] = true
	tt, err := newTopics(freshSeed(t), vocab, dwell, special)
	if err != nil {
		t.Fatal(err)
	}
	return tt
}

func TestTopics(t *testing.T) {
	for _, vocab := range []int{1024, 4096, 65536, 157184, 262144} {
		tt := tinyTopics(t, vocab, 60)
		pairs := map[[2]int]bool{}
		last, sizes := 0, map[int]int{}
		for id := range vocab {
			topic, other := tt.of(id)
			if id == 3 {
				if topic != -1 || other != -1 {
					t.Errorf("vocabulary %d: a special token has topics %d and %d", vocab, topic, other)
				}
				continue
			}
			if topic < last || topic >= tt.count || tt.first(topic) > id {
				t.Fatalf("vocabulary %d: token %d: have topic %d, which begins at %d, after topic %d", vocab, id, topic, tt.first(topic), last)
			}
			last = topic
			sizes[topic]++
			if other < 0 {
				continue
			}
			pair := [2]int{min(topic, other), max(topic, other)}
			if topic == other || pairs[pair] {
				t.Fatalf("vocabulary %d: token %d: a bridge from %d to %d, which are one or joined already", vocab, id, topic, other)
			}
			pairs[pair] = true
		}
		if len(sizes) != tt.count {
			t.Errorf("vocabulary %d: have %d topics with tokens, want %d", vocab, len(sizes), tt.count)
		}
		if share := float64(len(pairs)) * 60 / float64(vocab); share < 0.7 || share > 1.3 {
			t.Errorf("vocabulary %d: have %d bridges, want about one token in 60", vocab, len(pairs))
		}
	}
}

func codeDot(a, b code) (sum int) {
	for i := range a {
		sum += int(a[i]) * int(b[i])
	}
	return sum
}

func TestOwnCodes(t *testing.T) {
	tt := tinyTopics(t, 4096, 60) // 32 topics of 128
	for topic := range 3 {
		first := tt.first(topic)
		for a := first; a < first+128; a++ {
			for b := first; b < a; b++ {
				if a == 3 || b == 3 {
					continue
				}
				if d := codeDot(tt.own(a), tt.own(b)); d != 0 {
					t.Fatalf("tokens %d and %d of one topic: have a product of %d, want 0", a, b, d)
				}
			}
		}
	}
	if d := codeDot(tt.own(200), tt.own(200)); d != codeWidth {
		t.Errorf("have %d of a code with itself, want %d", d, codeWidth)
	}
}

func TestWalk(t *testing.T) {
	for _, dwell := range []int{20, 60} {
		tt := tinyTopics(t, 65536, dwell)
		ids := tt.walk(freshSeed(t), 30000)
		switches := 0
		last, _ := tt.of(ids[0])
		for i, id := range ids[1:] {
			if id == ids[i] {
				t.Fatalf("token %d follows itself", id)
			}
			topic, other := tt.of(id)
			if other < 0 && topic != last { // a bridge counts for nothing by itself
				switches++
				last = topic
			}
		}
		if have := float64(len(ids)) / float64(switches); math.Abs(have/float64(dwell)-1) > 0.25 {
			t.Errorf("have a topic last %.1f tokens, want about %d", have, dwell)
		}
	}
	tt := tinyTopics(t, 4096, 0)
	ids := tt.walk(freshSeed(t), 1000)
	first, _ := tt.of(ids[0])
	for _, id := range ids {
		if topic, _ := tt.of(id); topic != first {
			t.Fatalf("dwell 0: have topics %d and %d, want one", first, topic)
		}
	}
}
