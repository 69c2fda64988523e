package kernels

import "github.com/sluicehost/sluice/sdk/program"

// refResolve stops a token at the first layer with a pick that has no slot.
func refResolve(c *program.Call) {
	const absent = 0xFFFFFFFF
	if c.Values("token")[0] != 0 {
		return
	}
	missing, k, log := false, int(c.U32("top_k")), int(c.U32("log"))
	for i, e := range c.Values("picks")[:k] {
		missing = missing || e >= float64(c.U32("experts")) || c.Values("residency")[int(e)] == absent
		c.Store("token", log+i, e)
	}
	for i := range int(c.U32("depth")) * k {
		c.Store("token", log+k+i, c.Values("guesses")[i/k*int(c.U32("stride"))+i%k])
	}
	if !missing {
		return
	}
	c.Store("token", 0, float64(c.U32("index")+1))
	for i := c.U32("first"); i < c.U32("last"); i++ {
		c.Store("token", int(i), 0)
	}
}
