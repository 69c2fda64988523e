package program

import (
	"math"
	"strings"
	"testing"
)

func TestBufferBytes(t *testing.T) {
	for name, c := range map[string]struct {
		buffer               *Buffer
		chunk, outs, context uint64
		want                 uint64
		err                  string
	}{
		"rows and outputs":     {&Buffer{Fixed: 3, PerRow: 5, PerOut: 7}, 10, 2, 0, 4 * (3 + 50 + 14), ""},
		"positions":            {&Buffer{Class: Class_KV, PerPos: 8}, 10, 2, 100, 4 * 800, ""},
		"positions by blocks":  {&Buffer{PerPos: 8, PosDiv: 128}, 1, 1, 129, 4 * 16, ""},
		"rows by positions":    {&Buffer{PerPos: 3, PerRowPos: 2, PosDiv: 128}, 10, 1, 129, 4 * (3 + 20) * 2, ""},
		"ring":                 {&Buffer{Class: Class_RING, PerPos: 8, Window: 50}, 10, 2, 1000, 4 * 8 * 60, ""},
		"halves round up to 4": {&Buffer{Elem: Elem_F16, Fixed: 3}, 1, 1, 1, 8, ""},
		"nothing":              {nil, 1, 1, 1, 0, ""},
		"product overflows":    {&Buffer{Name: "big", PerRow: 1 << 40}, 1 << 40, 1, 1, 0, "buffer big: the size overflows"},
		"rows overflow":        {&Buffer{PerRowPos: 1 << 40}, 1 << 40, 1, 1, 0, "overflows"},
		"sum overflows":        {&Buffer{Fixed: math.MaxUint64, PerRow: 1}, 1, 1, 1, 0, "overflows"},
		"bytes overflow":       {&Buffer{Fixed: math.MaxUint64 / 2}, 1, 1, 1, 0, "overflows"},
		"ring of everything":   {&Buffer{Class: Class_RING, PerPos: 8, Window: 50}, 10, 2, 60, 4 * 8 * 60, ""},
		"ring over everything": {&Buffer{Class: Class_RING, PerPos: 8, Window: math.MaxUint32}, 10, 2, 59, 4 * 8 * 59, ""},
		"ring overflows":       {&Buffer{Class: Class_RING, PerPos: 1, Window: 1}, math.MaxUint64, 1, 7, 4 * 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			have, err := BufferBytes(c.buffer, c.chunk, c.outs, c.context)
			if c.err == "" && (err != nil || have != c.want) {
				t.Errorf("have %d, %v, want %d", have, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("have %d, %v, want error with %q", have, err, c.err)
			}
		})
	}
}

func TestGrid(t *testing.T) {
	step := StepUniform{T: 5, Pos0: 95, S: 100, O: 2, G: 7, Chunk: 8}
	term := func(mul, div uint32, n Var) *Term { return &Term{Mul: mul, Div: div, N: n} }
	for name, c := range map[string]struct {
		terms []*Term
		want  [3]uint32
		err   string
	}{
		"no terms":                 {nil, [3]uint32{1, 1, 1}, ""},
		"every variable":           {[]*Term{term(3, 2, Var_T), term(0, 0, Var_O), term(1, 2, Var_G)}, [3]uint32{8, 2, 4}, ""},
		"one and positions":        {[]*Term{term(129, 64, Var_ONE), term(1, 30, Var_S)}, [3]uint32{3, 4, 1}, ""},
		"window":                   {[]*Term{{Mul: 1, Div: 16, N: Var_SW, Window: 64}, {N: Var_SW, Window: 1000}}, [3]uint32{4, 100, 1}, ""},
		"just fits":                {[]*Term{term(65535, 1, Var_ONE)}, [3]uint32{65535, 1, 1}, ""},
		"folds":                    {[]*Term{term(65536, 1, Var_ONE)}, [3]uint32{65535, 2, 1}, ""},
		"folds a long one":         {[]*Term{term(65535*3, 1, Var_ONE)}, [3]uint32{65535, 3, 1}, ""},
		"a y of 1 can't fold":      {[]*Term{term(65536, 1, Var_ONE), term(1, 1, Var_ONE)}, [3]uint32{}, "grid x: have 65536"},
		"folds into too many":      {[]*Term{term(math.MaxUint32, 1, Var_T)}, [3]uint32{}, "grid y"},
		"can't fold":               {[]*Term{term(65536, 1, Var_ONE), term(2, 1, Var_ONE)}, [3]uint32{}, "grid x: have 65536"},
		"y too long":               {[]*Term{term(1, 1, Var_ONE), term(65536, 1, Var_ONE)}, [3]uint32{}, "grid y: have 65536"},
		"four":                     {make([]*Term, 4), [3]uint32{}, "4 grid terms"},
		"unknown variables are 1":  {[]*Term{term(1, 1, Var(99))}, [3]uint32{1, 1, 1}, ""},
		"zero mul and div are one": {[]*Term{{N: Var_S}, nil}, [3]uint32{100, 1, 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			have, err := Grid(c.terms, step, 65535)
			if c.err == "" && (err != nil || have != c.want) {
				t.Errorf("have %v, %v, want %v", have, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("have %v, %v, want error with %q", have, err, c.err)
			}
		})
	}
	if g, err := Grid([]*Term{{Mul: 70000}}, step, 100000); err != nil || g != [3]uint32{70000, 1, 1} {
		t.Errorf("a device with longer grids: have %v, %v, want no fold", g, err)
	}
	if _, err := Grid([]*Term{{Mul: 70000}}, step, 1000); err == nil {
		t.Error("a device with shorter grids than the fold's: have no error")
	}
}

func TestPick(t *testing.T) {
	s := &Section{Variants: []*Variant{{Min: 1, Max: 1}, {Min: 2, Max: 8}, {Min: 9}}}
	for n, want := range map[uint32]int{0: -1, 1: 0, 2: 1, 8: 1, 9: 2, 1 << 30: 2} {
		have := s.Pick(n)
		if want < 0 && have != nil || want >= 0 && have != s.Variants[want] {
			t.Errorf("%d rows: have %v, want variant %d", n, have, want)
		}
	}
	if (*Section)(nil).Pick(1) != nil {
		t.Error("no section: want no variant")
	}
}

func TestMaxTiles(t *testing.T) {
	for _, c := range []struct {
		t                      uint64
		k, experts, rows, want uint32
	}{
		{1, 4, 32, 8, 4}, {64, 4, 32, 8, 64}, {8, 4, 2, 16, 4}, {8, 4, 2, 0, 0},
	} {
		if have := MaxTiles(c.t, c.k, c.experts, c.rows); have != uint64(c.want) {
			t.Errorf("%+v: have %d", c, have)
		}
	}
}

func TestTiled(t *testing.T) {
	v := &Variant{Dispatches: []*Dispatch{nil, {Bindings: []*Binding{nil, {At: &Binding_Table{Table: Table_TILES}}}}}}
	if !v.Tiled() || (*Variant)(nil).Tiled() || (&Variant{Dispatches: v.Dispatches[:1]}).Tiled() {
		t.Error("want only the variant that binds TILES to be tiled")
	}
}
