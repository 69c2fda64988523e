package kernels

import "github.com/sluicehost/sluice/sdk/program"

func refMatmul(c *program.Call) {
	rows, stride, off := int(c.U32("rows")), int(c.U32("y_stride")), int(c.U32("y_off"))
	for t := range int(c.Step.T) {
		x := activations(c, t)
		for row := range rows {
			put(c, t*stride+off+row, dot(c, "w", "w", c.Planes("planes"), row, x))
		}
	}
}

func refMatmulPair(c *program.Call) {
	rows, stride, off := int(c.U32("rows")), int(c.U32("y_stride")), int(c.U32("y_off"))
	for t := range int(c.Step.T) {
		x := activations(c, t)
		for row := range rows {
			g := dot(c, "gate", "gate", c.Planes("gate"), int(c.U32("gate_row0"))+row, x)
			u := dot(c, "up", "up", c.Planes("up"), int(c.U32("up_row0"))+row, x)
			c.Store("y", t*stride+off+row, glu(c, g, u))
		}
	}
}

// eachPair calls f for every (token, pick) pair of the wave's tiles, with the start of its expert's record.
func eachPair(c *program.Call, f func(pair int, record uint32)) {
	tiles, pairs := c.Values("tiles"), c.Values("pairs")
	for g := range int(c.Grid[1]) {
		expert, first, n := int(tiles[4*g]), int(tiles[4*g+1]), int(tiles[4*g+2])
		record := uint32(c.Values("residency")[expert]) * c.U32("stride")
		for i := range n {
			f(int(pairs[first+i]), record)
		}
	}
}

// within gives a part's planes in the record that starts at record.
func within(c *program.Call, part string, record uint32) [4]uint32 {
	p := c.Planes(part)
	for i := range p {
		p[i] += record
	}
	return p
}

func refExpertMatmulPair(c *program.Call) {
	rows, k := int(c.U32("rows")), int(c.U32("top_k"))
	eachPair(c, func(pair int, record uint32) {
		x := activations(c, pair/k)
		for row := range rows {
			g := dot(c, "gate", "bank", within(c, "gate", record), int(c.U32("gate_row0"))+row, x)
			u := dot(c, "up", "bank", within(c, "up", record), int(c.U32("up_row0"))+row, x)
			c.Store("y", pair*rows+row, glu(c, g, u))
		}
	})
}

func refExpertMatmul(c *program.Call) {
	rows, n := int(c.U32("rows")), 32*int(c.U32("units"))
	eachPair(c, func(pair int, record uint32) {
		act := c.Values("act")[pair*n : (pair+1)*n]
		for row := range rows {
			c.Store("y", pair*rows+row, dot(c, "down", "bank", within(c, "down", record), row, act))
		}
	})
}

func refMoESum(c *program.Call) {
	n, k := int(c.U32("n")), int(c.U32("top_k"))
	dn, pw := c.Values("dn"), c.Values("pw")
	for t := range int(c.Grid[1]) {
		for i := range n {
			var sum float64
			for pair := t * k; pair < (t+1)*k; pair++ {
				sum += pw[pair] * dn[pair*n+i]
			}
			put(c, t*n+i, sum)
		}
	}
}

// refAttnChunk walks the same tiles: their rows share the runs' starts.
func refAttnChunk(c *program.Call) {
	hd, vd := int(c.Param("HD")), int(c.Param("VD"))
	g, qr, run := int(c.Param("G")), int(c.Param("QR")), int(c.Param("RUN"))
	kv := int(c.U32("kv_heads"))
	rows := int(c.Step.T) * g
	for r := range rows {
		t := r / g
		newest := int(c.Step.Pos0) + t
		start := oldestSeen(c, int(c.Step.Pos0)+r/qr*qr/g)
		for n := range int(c.Grid[2]) {
			first := max(start+n*run, oldestSeen(c, newest))
			last := min(start+(n+1)*run, newest+1)
			for kvh := range kv {
				h := kvh*g + r%g
				o := ((n*int(c.Step.T)+t)*kv*g + h) * (vd + 2)
				m, sum, values := -3e38, 0.0, make([]float64, vd)
				if first < last {
					q := c.Values("q")[((int(c.Step.Row0)+t)*kv*g+h)*hd:][:hd]
					m, sum, values = softmaxRun(c, q, first, last, kv, kvh)
				}
				c.Store("part", o, m)
				c.Store("part", o+1, sum)
				for i, v := range values {
					c.Store("part", o+2+i, v)
				}
			}
		}
	}
}

// oldestSeen is the first position in the window of a query at pos.
func oldestSeen(c *program.Call, pos int) int {
	if w := int(c.U32("window")); w > 0 {
		return max(0, pos+1-w)
	}
	return 0
}
