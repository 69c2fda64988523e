package kernels

import (
	"math"

	"github.com/sluicehost/sluice/sdk/program"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func refConv(c *program.Call) {
	taps, n, stride, off := int(c.Param("TAPS")), int(c.U32("n")), int(c.U32("stride")), int(c.U32("off"))
	x, kernel, state := c.Values("x"), c.Values("kernel"), c.Values("state")
	for ch := range n {
		s := make([]float64, taps) // this token's input last, older ones before it
		for j := range taps - 1 {
			s[j] = state[j*n+ch]
		}
		for t := range int(c.Step.T) {
			r := int(c.Step.Row0) + t
			s[taps-1] = x[r*stride+off+ch]
			var sum float64
			for j := range taps {
				sum += kernel[ch*taps+j] * s[j]
			}
			c.Store("y", r*n+ch, sum*sigmoid(sum))
			copy(s, s[1:])
		}
		for j := range taps - 1 {
			c.Store("state", j*n+ch, s[j])
		}
	}
}

// refDeltaRule follows the spec's Gated DeltaNet and KDA, a token at a time.
func refDeltaRule(c *program.Call) {
	d, heads, keyHeads := int(c.Param("D")), int(c.U32("heads")), int(c.U32("key_heads"))
	qkv, state, width := c.Values("qkv"), c.Values("state"), (2*keyHeads+heads)*d
	for h := range heads {
		s := make([]float64, d*d) // by key dim, then column
		at := func(i, j int) int { return h*d*d + (i/4*d+j)*4 + i%4 }
		for i := range d {
			for j := range d {
				s[i*d+j] = state[at(i, j)]
			}
		}
		for t := range int(c.Step.T) {
			r := int(c.Step.Row0) + t
			row, kh := qkv[r*width:][:width], h%keyHeads
			q, k := unit(row[kh*d:][:d], c.F32("eps")), unit(row[(keyHeads+kh)*d:][:d], c.F32("eps"))
			beta := sigmoid(c.Values("beta")[r*int(c.U32("beta_stride"))+int(c.U32("beta_off"))+h])
			for i, o := range deltaStep(s, q, k, row[(2*keyHeads+h)*d:][:d], decays(c, r, h, d), beta) {
				c.Store("y", (r*heads+h)*d+i, o/math.Sqrt(float64(d)))
			}
		}
		for i := range d {
			for j := range d {
				c.Store("state", at(i, j), s[i*d+j])
			}
		}
	}
}

// unit is x / max(‖x‖, eps), ggml's L2 norm.
func unit(x []float64, eps float64) []float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / max(math.Sqrt(s), eps)
	}
	return y
}

// deltaStep moves a head's S on by one token and gives Sᵀq.
func deltaStep(s, q, k, v, decay []float64, beta float64) []float64 {
	d := len(q)
	recalled, out := make([]float64, d), make([]float64, d)
	for i := range d {
		for j := range d {
			s[i*d+j] *= decay[i]
			recalled[j] += s[i*d+j] * k[i]
		}
	}
	for i := range d {
		for j := range d {
			s[i*d+j] += k[i] * beta * (v[j] - recalled[j])
			out[j] += s[i*d+j] * q[i]
		}
	}
	return out
}

// decays are a head's factors on S for activation row r, one a key dim.
func decays(c *program.Call, r, h, d int) []float64 {
	out, a := make([]float64, d), c.Values("a")[h]
	raw, dt := c.Values("raw")[r*int(c.U32("raw_stride"))+int(c.U32("raw_off")):], c.Values("dt")
	for i := range out {
		if c.Param("CHANNEL") == 1 {
			out[i] = math.Exp(c.F32("lower") * sigmoid(a*(raw[h*d+i]+dt[h*d+i])))
		} else {
			out[i] = math.Exp(softplus(raw[h]+dt[h]) * a)
		}
	}
	return out
}

// softplus is ln(1 + e^x) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func refGatedNorm(c *program.Call) {
	d, heads, stride, off := int(c.U32("d")), int(c.U32("heads")), int(c.U32("stride")), int(c.U32("off"))
	for t := range int(c.Grid[1]) {
		for h := range heads {
			at := (t*heads + h) * d
			for i, v := range norm(c.Values("x")[at:at+d], c.Values("nw"), c.F32("eps")) {
				g := c.Values("gate")[t*stride+off+h*d+i]
				act := sigmoid(g)
				if c.Param("SILU") == 1 {
					act *= g
				}
				c.Store("y", at+i, v*act)
			}
		}
	}
}
