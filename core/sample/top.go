package sample

import (
	"math"
	"slices"
)

// Top is the k largest logits and their ids, largest first and the lowest id first among
// equals; fewer where there are fewer. NaN counts as -Inf and comes out as such.
func Top(logits []float32, k int) ([]int32, []float32) {
	return top(nil, nil, logits, k)
}

// top appends to ids and values, which are empty.
func top(ids []int32, values, logits []float32, k int) ([]int32, []float32) {
	k = min(k, len(logits))
	if k <= 0 {
		return ids, values
	}
	// A heap of the k best so far, the worst of them at the root.
	h := heap{ids: ids, of: logits}
	for i := range int32(len(logits)) {
		switch {
		case len(h.ids) < k:
			h.push(i)
		case h.before(i, h.ids[0]):
			h.ids[0] = i
			h.down(0)
		}
	}
	slices.SortFunc(h.ids, func(a, b int32) int {
		if h.before(a, b) {
			return -1
		}
		return 1
	})
	for _, id := range h.ids {
		values = append(values, h.value(id))
	}
	return h.ids, values
}

// heap orders ids so that none comes before its children.
type heap struct {
	ids []int32
	of  []float32
}

func (h *heap) value(id int32) float32 {
	if v := h.of[id]; v == v {
		return v
	}
	return float32(math.Inf(-1))
}

// before says whether a ranks above b.
func (h *heap) before(a, b int32) bool {
	x, y := h.value(a), h.value(b)
	return x > y || x == y && a < b
}

func (h *heap) push(id int32) {
	h.ids = append(h.ids, id)
	for i := len(h.ids) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(h.ids[parent], h.ids[i]) {
			return
		}
		h.ids[parent], h.ids[i] = h.ids[i], h.ids[parent]
		i = parent
	}
}

func (h *heap) down(i int) {
	for {
		worst := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h.ids) && h.before(h.ids[worst], h.ids[child]) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		h.ids[i], h.ids[worst] = h.ids[worst], h.ids[i]
		i = worst
	}
}

// LogSumExp is ln(sum of exp(logit)), in float64 and without overflow; -Inf for none. A
// NaN among the logits makes it NaN: it reports on a model, so it hides nothing.
func LogSumExp(logits []float32) float64 {
	most := math.Inf(-1)
	for _, l := range logits {
		if l != l {
			return math.NaN()
		}
		most = max(most, float64(l))
	}
	if math.IsInf(most, 0) {
		return most
	}
	var sum float64
	for _, l := range logits {
		sum += math.Exp(float64(l) - most)
	}
	return most + math.Log(sum)
}
