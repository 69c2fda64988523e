package program

import (
	"strings"
	"testing"
)

// Rules about kernels and single dispatches.
func TestValidateRefusesDispatches(t *testing.T) {
	kern := func(name string, f func(*Kernel)) func(*builder) { return func(b *builder) { f(b.kern(name)) } }
	split := func(f func(*builder, *Dispatch)) func(*builder) {
		return func(b *builder) { f(b, b.disp(Kind_TRUNK, 0, 0, "blk.0.split")) }
	}
	router := func(f func(*builder, *Dispatch)) func(*builder) {
		return func(b *builder) { f(b, b.disp(Kind_TRUNK, 0, 0, "blk.0.router")) }
	}
	tiled := func(f func(*builder, *Dispatch)) func(*builder) {
		return func(b *builder) { f(b, b.disp(Kind_EXPERTS, 0, 1, "blk.0.down")) }
	}
	untiled := func(f func(*builder, *Dispatch)) func(*builder) {
		return func(b *builder) { f(b, b.disp(Kind_EXPERTS, 0, 0, "blk.0.down")) }
	}
	head := func(f func(*builder, *Dispatch)) func(*builder) {
		return func(b *builder) { f(b, b.disp(Kind_HEAD, 0, 0, "output")) }
	}
	swap := func(old, new string) func(*Kernel) {
		return func(k *Kernel) { k.Wgsl = strings.Replace(k.Wgsl, old, new, 1) }
	}
	long := strings.Repeat("n", maxName+1)
	for name, c := range map[string]fault{
		"kernel without name": {kern("split", func(k *Kernel) { k.Name = "" }), "kernel: have no name"},
		"kernel name twice":   {kern("split", func(k *Kernel) { k.Name = "merge" }), "kernel: have the name merge twice"},
		"kernel of bad WGSL":  {kern("split", swap("@binding(1)", "@binding(7)")), "kernel split: wgsl: variable a2: have binding 2, want 1"},
		"slot missing":        {kern("split", func(k *Kernel) { k.Slots = k.Slots[1:] }), "kernel split: have 4 slots, want 5 as bound in its WGSL"},
		"slot renamed":        {kern("split", func(k *Kernel) { k.Slots[0].Name = "q" }), "kernel split: slot 0: have q READ, want a0 READ as in its WGSL"},
		"slot more open":      {kern("split", func(k *Kernel) { k.Slots[0].Access = Access_READ_WRITE }), "slot 0: have a0 READ_WRITE, want a0 READ"},
		"uniform of a type":   {kern("split", swap("step: Step", "step: vec4<u32>")), "kernel split: uniform step: have type vec4<u32>, want Step or Constants"},
		"two steps":           {kern("router[f32]", swap("c: Constants", "c: Step")), "kernel router[f32]: have 2 uniforms of type Step"},
		"constants of a size": {kern("router[f32]", func(k *Kernel) { k.ConstantBytes = 32 }), "kernel router[f32]: have constant_bytes 32, want 16"},
		"constants not bound": {kern("split", func(k *Kernel) { k.ConstantBytes = 16 }), "kernel split: have constant_bytes 16, want 0"},
		"no entry point":      {kern("split", swap("fn main", "fn other")), "kernel split: have no @compute fn main"},
		"workgroup too large": {kern("split", swap("@workgroup_size(64)", "@workgroup_size(64, 5)")), "have 320 invocations in a workgroup, want at most 256"},
		"workgroup memory":    {kern("split", swap("@compute", "var<workgroup> w: array<vec4<f32>, 1025>; @compute")), "have 16400 bytes of workgroup memory, want at most 16384"},
		"num_workgroups":      {kern("split", swap("main()", "main(@builtin(num_workgroups) n: vec3<u32>)")), "reads num_workgroups"},
		"ref too long":        {kern("split", func(k *Kernel) { k.Ref = long }), "have a ref of 257 bytes"},
		"param too long":      {kern("split", func(k *Kernel) { k.Params = map[string]uint32{long: 1} }), "have a param of 257 bytes"},
		"type of none":        {kern("router[f32]", func(k *Kernel) { k.Types["w1"] = 999 }), "types: w1: have type 999, want a ggml type"},
		"kernel out of range": {split(func(_ *builder, d *Dispatch) { d.Kernel = 99 }), "section 0 (TRUNK of layer 0), rows 1, dispatch 3 blk.0.split: have kernel 99"},
		"label too long":      {split(func(_ *builder, d *Dispatch) { d.Label = long }), "have a label of 257 bytes"},
		"too few constants":   {router(func(_ *builder, d *Dispatch) { d.Constants = d.Constants[1:] }), "(router[f32]): have 15 bytes of constants, want 16"},
		"too few bindings":    {split(func(_ *builder, d *Dispatch) { d.Bindings = d.Bindings[1:] }), "(split): have 4 bindings, want 5"},
		"nothing bound":       {split(func(_ *builder, d *Dispatch) { d.Bindings[0] = &Binding{} }), "slot a0: have nothing bound"},
		"buffer out of range": {split(func(_ *builder, d *Dispatch) { d.Bindings[0] = &Binding{At: &Binding_Buffer{Buffer: 99}} }), "slot a0: have buffer 99"},
		"weight out of range": {router(func(_ *builder, d *Dispatch) {
			d.Bindings[1] = &Binding{At: &Binding_Weight{Weight: &WeightBand{Weight: 99}}}
		}), "slot w1: have weight 99"},
		"weight of nothing":       {router(func(b *builder, d *Dispatch) { d.Bindings[1] = &Binding{At: &Binding_Weight{}} }), "of type Q8_0, want F32"},
		"band out of range":       {router(func(_ *builder, d *Dispatch) { d.Bindings[1].GetWeight().Band = 1 }), "have band 1 of weight blk.0.ffn_gate_inp.weight, want below 1"},
		"band of another type":    {router(func(b *builder, d *Dispatch) { b.rebind(d, "w1", "blk.0.attn_output.weight") }), "band 0 of weight blk.0.attn_output.weight of type Q4_0, want F32, which the kernel reads"},
		"vector for a matrix":     {router(func(b *builder, d *Dispatch) { b.rebind(d, "w1", "output_norm.weight") }), "slot w1: have elements of u32 in the WGSL, want f32 for output_norm.weight"},
		"matrix for a buffer":     {split(func(b *builder, d *Dispatch) { b.rebind(d, "a0", "token_embd.weight") }), "slot a0: have elements of f32 in the WGSL, want u32 for token_embd.weight"},
		"weight written":          {split(func(b *builder, d *Dispatch) { b.rebind(d, "y3", "output_norm.weight") }), "slot y3: have output_norm.weight bound READ_WRITE, want READ"},
		"halves as f32":           {split(func(b *builder, d *Dispatch) { b.rebind(d, "a0", "blk.0.k") }), "slot a0: have elements of f32 in the WGSL, want u32 for blk.0.k"},
		"rope out of range":       {split(func(_ *builder, d *Dispatch) { d.Bindings[0] = &Binding{At: &Binding_Rope{Rope: 9}} }), "slot a0: have rope 9, want below 1"},
		"rope written":            {split(func(b *builder, d *Dispatch) { b.rebind(d, "y3", "rope:rope") }), "slot y3: have rope:rope bound READ_WRITE"},
		"step as storage":         {split(func(b *builder, d *Dispatch) { d.Bindings[0] = d.Bindings[4] }), "slot a0: have STEP bound as READ, want STEP and CONSTANTS, and only them, as UNIFORM"},
		"buffer as uniform":       {split(func(b *builder, d *Dispatch) { b.rebind(d, "step", "x") }), "slot step: have x bound as UNIFORM"},
		"constants for the step":  {router(func(b *builder, d *Dispatch) { d.Bindings[4] = d.Bindings[5] }), "slot step: have CONSTANTS bound to a Step, want Constants"},
		"step for the constants":  {router(func(b *builder, d *Dispatch) { d.Bindings[5] = d.Bindings[4] }), "slot c: have STEP bound to a Constants, want Step"},
		"bank in a trunk":         {router(func(b *builder, d *Dispatch) { b.rebind(d, "w1", "bank") }), "slot w1: have the bank bound, want it in EXPERTS only"},
		"bank that is false":      {untiled(func(b *builder, d *Dispatch) { d.Bindings[1] = &Binding{At: &Binding_Bank{}} }), "slot bank: have the bank bound"},
		"bank written":            {untiled(func(b *builder, d *Dispatch) { b.rebind(d, "y5", "bank") }), "slot y5: have bank bound READ_WRITE"},
		"residency in a trunk":    {router(func(b *builder, d *Dispatch) { b.rebind(d, "picks", "RESIDENCY") }), "have RESIDENCY bound in TRUNK, want it in [EXPERTS] only"},
		"picks in the head":       {head(func(b *builder, d *Dispatch) { b.rebind(d, "outs", "PICKS") }), "have PICKS bound in HEAD"},
		"picks written elsewhere": {untiled(func(b *builder, d *Dispatch) { b.rebind(d, "y5", "PICKS") }), "slot y5: have PICKS bound READ_WRITE, want READ"},
		"picks as f32":            {split(func(b *builder, d *Dispatch) { b.rebind(d, "a0", "PICKS") }), "slot a0: have elements of f32 in the WGSL, want u32 for PICKS"},
		"logits in a trunk":       {split(func(b *builder, d *Dispatch) { b.rebind(d, "y3", "LOGITS") }), "have LOGITS bound in TRUNK"},
		"guesses in a trunk":      {router(func(b *builder, d *Dispatch) { b.rebind(d, "picks", "GUESSES") }), "have GUESSES bound in TRUNK"},
		"outs in a trunk":         {split(func(b *builder, d *Dispatch) { b.rebind(d, "a0", "OUTS") }), "have OUTS bound in TRUNK"},
		"table of none":           {split(func(_ *builder, d *Dispatch) { d.Bindings[0] = &Binding{At: &Binding_Table{Table: 77}} }), "slot a0: have table 77, which is none"},
		"pairs without tiles":     {untiled(func(b *builder, d *Dispatch) { b.rebind(d, "picks", "PAIRS") }), "have PAIRS bound, want it in variants that bind TILES"},
		"tiles of no rows":        {func(b *builder) { b.prog.TileRows = 0 }, "have TILES bound, want it in variants that bind TILES, with tile_rows above 0"},
		"tiles in a trunk":        {router(func(b *builder, d *Dispatch) { b.rebind(d, "picks", "TILES") }), "have TILES bound in TRUNK"},
		"read and written":        {split(func(b *builder, d *Dispatch) { b.rebind(d, "y3", "h") }), "have h bound to a0 as READ and to y3 as READ_WRITE"},
		"written twice": {router(func(b *builder, d *Dispatch) {
			b.rebind(d, "picks", "PICKS")
			b.rebind(b.disp(Kind_TRUNK, 0, 0, "blk.0.attn_output"), "y3", "y")
		}), "have y bound to y2 as READ_WRITE and to y3 as READ_WRITE"},
		"session in experts":     {untiled(func(b *builder, d *Dispatch) { b.rebind(d, "y5", "blk.0.state") }), "slot y5: have blk.0.state bound READ_WRITE, want READ"},
		"session in a guess":     {func(b *builder) { b.rebindGuess("blk.0.state") }, "have blk.0.state bound READ_WRITE, want READ"},
		"result of no layer":     {untiled(func(_ *builder, d *Dispatch) { d.Result = &Result{Layer: 2, Slot: 5} }), "blk.0.down (expert_down): result of layer 2: want a layer below 2"},
		"result in waves":        {tiled(func(_ *builder, d *Dispatch) { d.Result = &Result{Slot: 5} }), "result of layer 0: want none in a GUESS, nor in a variant that runs in waves"},
		"result in a guess":      {func(b *builder) { b.disp(Kind_GUESS, 0, 0, "guess").Result = &Result{} }, "result of layer 0: want none in a GUESS"},
		"result out of range":    {untiled(func(_ *builder, d *Dispatch) { d.Result = &Result{Slot: 99} }), "result of layer 0: have slot 99, want below"},
		"result that is read":    {untiled(func(_ *builder, d *Dispatch) { d.Result = &Result{Slot: 0} }), "result of layer 0: have slot 0, want one that writes a buffer"},
		"result of a table":      {router(func(_ *builder, d *Dispatch) { d.Result = &Result{Slot: 2} }), "result of layer 0: have slot 2, want one that writes a buffer"},
		"result of other width":  {router(func(_ *builder, d *Dispatch) { d.Result = &Result{Slot: 3} }), "result of layer 0: have buffer pw, want a SCRATCH buffer of F32 with per_row 64"},
		"no grid":                {split(func(_ *builder, d *Dispatch) { d.Grid = nil }), "have 0 grid terms, want 1 to 3"},
		"grid of four":           {split(func(_ *builder, d *Dispatch) { d.Grid = make([]*Term, 4) }), "have 4 grid terms"},
		"grid of no variable":    {split(func(_ *builder, d *Dispatch) { d.Grid[0].N = 9 }), "grid x: have variable 9"},
		"window without SW":      {split(func(_ *builder, d *Dispatch) { d.Grid[1].Window = 9 }), "grid y: have S with window 9"},
		"SW without window":      {split(func(_ *builder, d *Dispatch) { d.Grid[1].N = Var_SW }), "grid y: have SW with window 0"},
		"outputs in a trunk":     {split(func(_ *builder, d *Dispatch) { d.Grid[1].N = Var_O }), "grid y: have O, want it in HEAD only"},
		"tiles without tables":   {untiled(func(_ *builder, d *Dispatch) { d.Grid[0].N = Var_G }), "grid x: have G, want it in variants that bind TILES only"},
		"grid too long":          {split(func(_ *builder, d *Dispatch) { d.Grid[0].Mul = 65536 }), "grid x: have 65536 workgroups, want at most 65535"},
		"grid too long in y":     {split(func(_ *builder, d *Dispatch) { d.Grid[1].Mul = 9000 }), "grid y: have 72000"},
		"grid of tiles too long": {tiled(func(_ *builder, d *Dispatch) { d.Grid[0].Mul = 4000 }), "grid x: have 80000"},
		"grid of outputs too":    {head(func(_ *builder, d *Dispatch) { d.Grid[1].Mul = 9000 }), "grid y: have 72000"},
		"grid folds too often":   {split(func(_ *builder, d *Dispatch) { d.Grid = []*Term{{Mul: 1 << 31, N: Var_S}} }), "grid y: have"},
	} {
		t.Run(name, func(t *testing.T) {
			b := small(t)
			c.mutate(b)
			wantFault(t, b.validate(testBounds()), c.want)
		})
	}
}

// rebindGuess makes the guess write a buffer beside GUESSES.
func (b *builder) rebindGuess(buffer string) {
	b.current = b.sect(Kind_GUESS, 0)
	b.variant = b.current.Variants[0]
	b.run("guess more", "guess_more", "y -> "+buffer, grid(perRow(1, 1)), nil)
}

// A long one-dimensional grid is no fault: the host folds it.
func TestValidateFoldsGrids(t *testing.T) {
	b := small(t)
	b.disp(Kind_TRUNK, 0, 0, "blk.0.merge").Grid = grid(perRow(1_000_000, 1))
	if err := b.validate(testBounds()); err != nil {
		t.Error(err)
	}
}

func TestValidateCountsStorageBindings(t *testing.T) {
	x := testBounds()
	x.Limits.MaxBindings = 5
	wantFault(t, small(t).validate(x), "kernel expert_down: have 6 storage bindings, want at most 5, the device's limit")
}

func TestValidateAllowsStructsInStorage(t *testing.T) {
	b := small(t)
	k := b.kern("expert_matmul")
	k.Wgsl = strings.Replace(k.Wgsl, "tiles: array<u32>", "tiles: array<Tile>", 1) + "struct Tile { expert: u32, first: u32, pairs: u32, pad: u32 }"
	if err := b.validate(testBounds()); err != nil {
		t.Error(err)
	}
}
