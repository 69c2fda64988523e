package kernels

import (
	"testing"

	"github.com/sluicehost/sluice/sdk/program"
)

// chunkDispatches are the largest dispatches of the many-token kernels for a model on a device.
func chunkDispatches(m realShape, l *program.Limits) []dispatched {
	wide := MatmulTile(l, 8192, int(m.widest/32))
	pair, down := ExpertTile(l, int(m.hidden/32)).Pair(), ExpertTile(l, int(m.expertFF/32))
	attn, err := NewAttnChunk(l, int(m.heads), int(m.kvHeads), int(m.headDim))
	if err != nil {
		panic(err)
	}
	consts := func(rows, units uint32) map[string]uint32 {
		return map[string]uint32{"rows": rows, "units": units, "top_k": m.topK}
	}
	return []dispatched{
		{"matmul", wide.Params, consts(m.hidden, m.widest/32), wide.Choice},
		{"matmul_pair", wide.Params, consts(m.widest, m.hidden/32), wide.Choice},
		{"expert_matmul_pair", pair.Params, consts(m.expertFF, m.hidden/32), pair.Choice},
		{"expert_matmul", down.Params, consts(m.hidden, m.expertFF/32), down.Choice},
		{"moe_sum", nil, consts(0, 0), ""},
		{"attn_chunk", attn.Params, map[string]uint32{"window": m.window}, attn.Choice},
	}
}

// TestTileRows: fewer rows where rows are so long that the loops would be ended, and fewer slots where memory is short.
func TestTileRows(t *testing.T) {
	cpu := &program.Limits{Cpu: true, LoopLimit: 65535}
	for _, c := range []struct {
		limits        *program.Limits
		rows, units   int
		br, bt        int
		pair, experts bool
	}{
		{cpu, 100, 64, 32, 32, false, false},
		{cpu, 100, 64, 16, 32, true, false},
		{cpu, 100, 1900, 32, 32, false, false},
		{cpu, 100, 2000, 16, 32, false, false},
		{cpu, 100, 5000, 8, 32, false, true},
		{&program.Limits{WorkgroupBytes: 48 << 10}, 8192, 64, 64, 128, false, false},
		{&program.Limits{WorkgroupBytes: 48 << 10}, 2048, 64, 64, 64, false, false},
		{&program.Limits{WorkgroupBytes: 48 << 10}, 256, 64, 64, 32, false, false},
		{&program.Limits{WorkgroupBytes: 16 << 10}, 8192, 64, 64, 32, false, false},
		{&program.Limits{WorkgroupBytes: 16 << 10}, 8192, 64, 32, 32, true, true},
	} {
		tile := MatmulTile(c.limits, c.rows, c.units)
		if c.experts {
			tile = ExpertTile(c.limits, c.units)
		}
		if c.pair {
			tile = tile.Pair()
		}
		if tile.BR != c.br || tile.BT != c.bt {
			t.Errorf("%+v: have a tile of %d x %d", c, tile.BR, tile.BT)
		}
	}
}

func TestNewAttnChunk(t *testing.T) {
	cpu, gpu := &program.Limits{Cpu: true, LoopLimit: 65535}, &program.Limits{WorkgroupBytes: 48 << 10}
	for _, c := range []struct {
		limits             *program.Limits
		heads, kv, headDim int
		run                int
	}{{cpu, 32, 8, 64, 1024}, {cpu, 16, 2, 256, 512}, {cpu, 16, 2, 512, 256}, {gpu, 32, 8, 64, 1024}, {gpu, 16, 2, 512, 2048}} {
		a, err := NewAttnChunk(c.limits, c.heads, c.kv, c.headDim)
		if err != nil || a.Run != c.run || a.Params["RUN"] != uint32(c.run) {
			t.Errorf("%+v: have runs of %d, error %v", c, a.Run, err)
		}
		// Every position that a tile sees lies in a run of the grid, and every run has a place in the buffer.
		for _, window := range []int{0, 1, 128, 1024} {
			g, part := a.Grid(window), a.Part(window)
			runs := uint64(part.GetPerRow()) / uint64(c.heads*(c.headDim+2))
			if window == 0 {
				if g[2].N != program.Var_S || g[2].Div != part.PosDiv || part.PerRowPos != uint64(c.heads*(c.headDim+2)) {
					t.Errorf("%+v: have grid %v for buffer %v", c, g, part)
				}
				continue
			}
			span := window - 1 + (a.Rows+c.heads/c.kv-2)/(c.heads/c.kv) + 1
			if int(g[2].Window) < span || runs*uint64(a.Run) < uint64(span) || int(g[2].Window) != a.MergeWindow(window) {
				t.Errorf("%+v, window %d: have grid %v and %d runs for %d positions", c, window, g, runs, span)
			}
		}
	}
	if a, err := NewAttnChunk(&program.Limits{WorkgroupBytes: 16 << 10}, 4, 2, 64); err != nil || a.Choice != "lanes" {
		t.Errorf("16 KiB of workgroup memory: have the form %q, error %v", a.Choice, err)
	}
	for _, c := range [][3]int{{4, 3, 64}, {4, 2, 60}, {4, 2, 520}, {4, 0, 64}, {0, 1, 64}, {4, 4, 0}} {
		if _, err := NewAttnChunk(gpu, c[0], c[1], c[2]); err == nil {
			t.Errorf("%v: have no error", c)
		}
	}
}

func TestNewAttnSplit(t *testing.T) {
	for _, c := range []struct {
		cpu                bool
		kib                uint32
		heads, kv, headDim int
		g, cuts            uint32
	}{
		{true, 32, 32, 8, 64, 4, 1}, {true, 32, 16, 2, 512, 8, 1}, {true, 16, 16, 2, 512, 4, 2}, {true, 16, 16, 2, 256, 8, 1}, {true, 16, 32, 2, 256, 8, 2},
		{true, 48, 71, 1, 64, 1, 71}, {true, 48, 64, 1, 64, 16, 4}, {true, 16, 9, 1, 512, 3, 3},
		{false, 48, 32, 8, 64, 2, 2}, {false, 48, 16, 2, 512, 2, 4}, {false, 16, 9, 1, 512, 1, 9}, {false, 48, 16, 16, 64, 1, 1}, {false, 48, 9, 3, 64, 3, 1}, {false, 48, 4, 2, 60, 2, 1}, {false, 16, 32, 8, 256, 2, 2},
	} {
		limits := &program.Limits{WorkgroupBytes: c.kib << 10, Cpu: c.cpu}
		a, err := NewAttnSplit(limits, c.heads, c.kv, c.headDim)
		if err != nil || a.Params["G"] != c.g || a.Params["CUTS"] != c.cuts || a.Groups != c.kv*int(c.cuts) {
			t.Errorf("%+v: have %v, error %v", c, a.Params, err)
		}
		k, err := Build(Spec{Name: "attn_split", Choices: map[string]string{"kv": "f16", "split": a.Choice}, Params: a.Params})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := program.ParseWGSL(k.Wgsl); err != nil || d.WorkgroupBytes > limits.WorkgroupBytes || d.Workgroup[0] > 256 {
			t.Errorf("%+v: have %d bytes of workgroup memory, %d lanes, error %v", c, d.WorkgroupBytes, d.Workgroup[0], err)
		}
		if choice := map[bool]string{false: "lanes", true: "keys"}[c.cpu || c.headDim%8 > 0]; a.Choice != choice {
			t.Errorf("%+v: have the form %q, want %q", c, a.Choice, choice)
		}
	}
	for _, c := range [][3]int{{4, 3, 64}, {4, 2, 63}, {4, 0, 64}, {0, 1, 64}, {4, 4, 0}, {4, 4, 8192}} {
		if _, err := NewAttnSplit(&program.Limits{WorkgroupBytes: 16 << 10}, c[0], c[1], c[2]); err == nil {
			t.Errorf("%v: have no error", c)
		}
	}
}
