package kernels

import (
	"math"
	"slices"

	"github.com/sluicehost/sluice/sdk/program"
)

// nobody is the id where there are fewer tokens than asked for.
const nobody = 0xFFFFFFFF

// chunkOf is the ids of a chunk that the mask lets through, best logit first, the lower id among equals.
func chunkOf(c *program.Call, logits []float64, chunk int) []int {
	first := chunk * int(c.U32("chunk"))
	var ids []int
	for id := first; id < min(first+int(c.U32("chunk")), len(logits)); id++ {
		if uint32(c.Values("mask")[id/32])>>(id%32)&1 == 0 {
			ids = append(ids, id)
		}
	}
	rankTokens(ids, logits)
	return ids
}

// rankTokens sorts ids by logit, NaN last.
func rankTokens(ids []int, logits []float64) {
	slices.SortFunc(ids, func(a, b int) int {
		switch {
		case above(logits[a], logits[b]):
			return -1
		case above(logits[b], logits[a]):
			return 1
		}
		return a - b
	})
}

// relative is exp(v - m), and 1 where they are equal: infinities too.
func relative(v, m float64) float64 {
	if v == m {
		return 1
	}
	return math.Exp(v - m)
}

func refTopN(c *program.Call) {
	n, vocab := int(c.Param("N")), int(c.U32("vocab"))
	for row := range int(c.Grid[1]) {
		logits := c.Values("logits")[row*vocab:][:vocab]
		for chunk := range int(c.Grid[0]) {
			ids := chunkOf(c, logits, chunk)
			part := row*int(c.Grid[0]) + chunk
			m, sum := math.Inf(-1), 0.0
			if len(ids) > 0 && !math.IsNaN(logits[ids[0]]) {
				m = logits[ids[0]]
			}
			for i := range max(n, len(ids)) {
				if i < n {
					id := float64(nobody)
					if i < len(ids) {
						id = float64(ids[i])
					}
					c.Store("ids", part*n+i, id)
				}
				if i < len(ids) && !math.IsNaN(logits[ids[i]]) {
					sum += relative(logits[ids[i]], m)
				}
			}
			c.Store("sums", 2*part, m)
			c.Store("sums", 2*part+1, sum)
		}
	}
}

func refTopNMerge(c *program.Call) {
	n, vocab := int(c.Param("N")), int(c.U32("vocab"))
	chunks := (vocab + int(c.U32("chunk")) - 1) / int(c.U32("chunk"))
	for row := range int(c.Grid[1]) {
		logits := c.Values("logits")[row*vocab:][:vocab]
		var ids []int
		for _, id := range c.Values("ids")[row*chunks*n:][:chunks*n] {
			if id != nobody {
				ids = append(ids, int(id))
			}
		}
		rankTokens(ids, logits)
		m, sum := math.Inf(-1), 0.0
		sums := c.Values("sums")[row*chunks*2:][:chunks*2]
		for i := range chunks {
			m = max(m, sums[2*i])
		}
		for i := range chunks {
			sum += relative(sums[2*i], m) * sums[2*i+1]
		}
		for i := range n {
			id, v := float64(nobody), math.Inf(-1)
			if i < len(ids) {
				id, v = float64(ids[i]), logits[ids[i]]
			}
			c.Store("top_ids", row*n+i, id)
			c.Store("top_logits", row*n+i, v)
		}
		c.Store("lse", row, m+math.Log(sum))
	}
}
