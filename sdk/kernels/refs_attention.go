package kernels

import (
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

// ringRow is where a cache holds position pos: a ring of window + chunk rows, or every position.
func ringRow(c *program.Call, pos int) int {
	if w := int(c.U32("window")); w > 0 {
		return pos % (w + int(c.Step.Chunk))
	}
	return pos
}

// turn applies RoPE to the first ROT dims of a head; angles are cos then sin.
func turn(c *program.Call, head, angles []float64) {
	half := int(c.Param("ROT")) / 2
	for p := range half {
		i, j := 2*p, 2*p+1
		if c.Param("NEOX") == 1 {
			i, j = p, p+half
		}
		co, si := angles[p], angles[half+p]
		head[i], head[j] = head[i]*co-head[j]*si, head[i]*si+head[j]*co
	}
}

func refHeads(c *program.Call) {
	hd, rot := int(c.Param("HD")), int(c.Param("ROT"))
	heads, kv, eps := int(c.U32("heads")), int(c.U32("kv_heads")), c.F32("eps")
	for t := range int(c.Grid[1]) {
		r := int(c.Step.Row0) + t
		row := c.Values("qkv")[r*int(c.U32("stride")) : (r+1)*int(c.U32("stride"))]
		angles := c.Values("rope")[r*rot : (r+1)*rot]
		for h := range heads {
			at := int(c.U32("q_off")) + h*int(c.U32("q_step"))
			q := norm(row[at:at+hd], c.Values("q_norm"), eps)
			turn(c, q, angles)
			for i, v := range q {
				c.Store("q", (r*heads+h)*hd+i, v)
			}
		}
		cache := ringRow(c, int(c.Step.Pos0)+t)
		for h := range kv {
			at := int(c.U32("k_off")) + h*hd
			k := norm(row[at:at+hd], c.Values("k_norm"), eps)
			turn(c, k, angles)
			at = int(c.U32("v_off")) + h*hd
			v := row[at : at+hd]
			if c.Param("VNORM") == 1 {
				v = norm(v, nil, eps)
			}
			for i := range hd {
				c.Store("kc", (cache*kv+h)*hd+i, k[i])
				c.Store("vc", (cache*kv+h)*hd+i, v[i])
			}
		}
	}
}

func refAttnSplit(c *program.Call) {
	hd, vd, g := int(c.Param("HD")), int(c.Param("VD")), int(c.Param("G")*c.Param("CUTS"))
	kv := int(c.U32("kv_heads"))
	heads := kv * g
	for t := range int(c.Grid[2]) {
		end := int(c.Step.Pos0) + t + 1
		seen := seenBy(c, t)
		keys := runLength(c, seen)
		for run := range (seen + keys - 1) / keys {
			first := end - seen + run*keys
			for h := range heads {
				q := c.Values("q")[((int(c.Step.Row0)+t)*heads+h)*hd:][:hd]
				m, sum, values := softmaxRun(c, q, first, min(first+keys, end), kv, h/g)
				o := ((run*int(c.Step.T)+t)*heads + h) * (vd + 2)
				c.Store("part", o, m)
				c.Store("part", o+1, sum)
				for i, v := range values {
					c.Store("part", o+2+i, v)
				}
			}
		}
	}
}

// seenBy is how many positions token t of the step sees, itself included.
func seenBy(c *program.Call, t int) int {
	seen := int(c.Step.Pos0) + t + 1
	if w := int(c.U32("window")); w > 0 {
		return min(seen, w)
	}
	return seen
}

// runLength is lib/runs.wgsl.
func runLength(c *program.Call, seen int) int {
	keys, most := int(c.Param("KEYS")), int(c.Param("MOST"))
	if most == 0 {
		return keys
	}
	return keys * max(1, (seen+keys*most-1)/(keys*most))
}

// softmaxRun is one query head over the cached positions first..last-1: the greatest
// score m, Σ exp(score - m), and Σ exp(score - m) · v.
func softmaxRun(c *program.Call, q []float64, first, last, kvHeads, kvHead int) (m, sum float64, values []float64) {
	hd, scale := len(q), c.F32("scale")
	vd, row := int(c.Param("VD")), int(c.Param("VROW"))
	score := make([]float64, last-first)
	m = math.Inf(-1)
	for j := range score {
		k := c.Values("kc")[(ringRow(c, first+j)*kvHeads+kvHead)*hd:][:hd]
		for i, v := range q {
			score[j] += v * k[i] * scale
		}
		m = max(m, score[j])
	}
	values = make([]float64, vd)
	for j := range score {
		p := math.Exp(score[j] - m)
		sum += p
		v := c.Values("vc")[(ringRow(c, first+j)*kvHeads+kvHead)*row:][:vd]
		for i := range values {
			values[i] += p * v[i]
		}
	}
	return m, sum, values
}

func refAttnMerge(c *program.Call) {
	hd, heads := int(c.Param("HD")), int(c.U32("heads"))
	part := c.Values("part")
	for t := range int(c.Grid[2]) {
		keys := runLength(c, seenBy(c, t))
		runs := (seenBy(c, t) + keys - 1) / keys
		at := func(run, h int) []float64 { return part[((run*int(c.Step.T)+t)*heads+h)*(hd+2):][:hd+2] }
		for h := range heads {
			m := math.Inf(-1)
			for run := range runs {
				m = max(m, at(run, h)[0])
			}
			for i := range hd {
				var sum, v float64
				for run := range runs {
					e := math.Exp(at(run, h)[0] - m)
					sum += e * at(run, h)[1]
					v += e * at(run, h)[2+i]
				}
				c.Store("y", ((int(c.Step.Row0)+t)*heads+h)*hd+i, v/sum)
			}
		}
	}
}

func refShortconv(c *program.Call) {
	taps, hidden := int(c.Param("TAPS")), int(c.U32("hidden"))
	bcx, kernel, state := c.Values("bcx"), c.Values("kernel"), c.Values("state")
	for ch := range hidden {
		s := make([]float64, taps) // bu of this token last, older ones before it
		for j := range taps - 1 {
			s[j] = state[j*hidden+ch]
		}
		for t := range int(c.Step.T) {
			r := int(c.Step.Row0) + t
			row := bcx[r*3*hidden:][:3*hidden]
			s[taps-1] = row[ch] * row[2*hidden+ch]
			var sum float64
			for j := range taps {
				sum += kernel[ch*taps+j] * s[j]
			}
			c.Store("y", r*hidden+ch, row[hidden+ch]*sum)
			copy(s, s[1:])
		}
		for j := range taps - 1 {
			c.Store("state", j*hidden+ch, s[j])
		}
	}
}
