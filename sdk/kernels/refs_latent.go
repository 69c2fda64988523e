package kernels

import "github.com/sluicehost/sluice/sdk/program"

func refLatent(c *program.Call) {
	rank, rot, heads, nope := int(c.Param("RANK")), int(c.Param("ROT")), int(c.U32("heads")), int(c.U32("nope"))
	qRow, kvRow := int(c.U32("q_stride")), int(c.U32("kv_stride"))
	for t := range int(c.Grid[1]) {
		r := int(c.Step.Row0) + t
		angles := c.Values("rope")[r*rot : (r+1)*rot]
		for h := range heads {
			for i, v := range turnPairs(c.Values("q")[r*qRow+h*(nope+rot)+nope:][:rot], angles) {
				c.Store("query", (r*heads+h)*(rank+rot)+rank+i, v)
			}
		}
		kv := c.Values("kv")[r*kvRow:][:rank+rot]
		row := append(norm(kv[:rank], c.Values("norm"), c.F32("eps")), turnPairs(kv[rank:], angles)...)
		for i, v := range row {
			c.Store("cache", (int(c.Step.Pos0)+t)*(rank+rot)+i, v)
		}
	}
}

// turnPairs is x after RoPE on neighbouring values; angles are cos then sin.
func turnPairs(x, angles []float64) []float64 {
	y := make([]float64, len(x))
	for p := range len(x) / 2 {
		co, si := angles[p], angles[len(x)/2+p]
		y[2*p], y[2*p+1] = x[2*p]*co-x[2*p+1]*si, x[2*p]*si+x[2*p+1]*co
	}
	return y
}

// refPerHead is matvec_heads and matmul_heads.
func refPerHead(c *program.Call, tokens int) {
	n, headRows, row0 := 32*int(c.U32("units")), int(c.U32("head_rows")), int(c.U32("row0"))
	for t := range tokens {
		for row := range int(c.U32("rows")) {
			h := (row0 + row) / headRows
			x := c.Values("x")[4*(t*int(c.U32("x_stride"))+h*int(c.U32("x_step"))):][:n]
			c.Store("y", t*int(c.U32("y_stride"))+h*int(c.U32("y_step"))+(row0+row)%headRows, dot(c, "w", "w", c.Planes("planes"), row, x))
		}
	}
}

func refMatvecHeads(c *program.Call) { refPerHead(c, int(c.Grid[2])) }

func refMatmulHeads(c *program.Call) { refPerHead(c, int(c.Step.T)) }
