package engine

import (
	"encoding/binary"
	"slices"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// stepBytes is the size of the step uniform.
const stepBytes = 32

// tileBytes is the size of one tile: expert, first pair, pairs, 0.
const tileBytes = 16

// tables are the buffers by which the host tells kernels about a step, and they tell it picks and logits.
type tables struct {
	step      *gpu.Buffer
	constants *gpu.Buffer
	picks     *gpu.Buffer // one range per MoE layer
	residency *gpu.Buffer // likewise
	entries   *gpu.Buffer // what can be an entry of residency: every slot's number, and absent
	outs      *gpu.Buffer
	logits    *gpu.Buffer
	guesses   *gpu.Buffer // a range per guess of a one-token step
	pairs     *gpu.Buffer // nil where the program runs no tiles
	tiles     *gpu.Buffer
	ropes     []*gpu.Buffer
	at        map[string]uint64 // offset of each distinct constants struct
}

// tableBytes are the sizes of the tables.
type tableBytes struct {
	constants, picks, residency, entries, outs, logits uint64
	pairs, tiles                                       uint64 // 0 where the program runs no tiles
	picksStride, residencyStride                       uint64 // from one MoE layer to the next
	guesses, guessStride                               uint64 // from one guess to the next
	ropes                                              []uint64
}

// all lists the sizes of the tables that there are.
func (t tableBytes) all() []uint64 {
	sizes := append([]uint64{stepBytes, t.constants, t.picks, t.residency, t.entries, t.outs, t.logits, t.pairs, t.tiles, t.guesses}, t.ropes...)
	return slices.DeleteFunc(sizes, func(n uint64) bool { return n == 0 })
}

// sizeTables computes the sizes from the plan, the chunk and the program's constants.
func (m *Model) sizeTables() tableBytes {
	layers, align := uint64(len(m.Records)), m.limits.StorageAlign
	size := func(t program.Table) uint64 {
		return program.TableBytes(t, m.Plan.Model, m.Program.TileRows, uint64(m.Chunk), uint64(m.outs()))
	}
	t := tableBytes{outs: size(program.Table_OUTS), logits: size(program.Table_LOGITS)}
	t.picksStride = alignUp(size(program.Table_PICKS), align)
	t.residencyStride = alignUp(size(program.Table_RESIDENCY), align)
	t.picks, t.residency = layers*t.picksStride, layers*t.residencyStride
	t.entries = 4 * (layers*uint64(m.Plan.Model.Experts) + 1) // a bank has no more slots than there are experts
	if m.token != nil {
		t.guessStride = alignUp(program.TableBytes(program.Table_GUESSES, m.Plan.Model, 0, 1, 0), align)
		t.guesses = layers * uint64(max(m.token.guesses, 1)) * t.guessStride
	}
	_, packed := m.packConstants()
	t.constants = uint64(len(packed))
	if m.Program.TileRows > 0 {
		t.pairs, t.tiles = size(program.Table_PAIRS), size(program.Table_TILES)
	}
	for _, r := range m.Plan.Ropes {
		t.ropes = append(t.ropes, program.RopeBytes(r, uint64(m.Chunk)))
	}
	return t
}

// outs is how many rows of logits one step can give.
func (m *Planned) outs() int { return min(m.Chunk, maxOuts) }

// packConstants lays every distinct constants struct of the program one after the other.
func (m *Model) packConstants() (at map[string]uint64, packed []byte) {
	align := m.limits.UniformAlign
	at = map[string]uint64{}
	m.eachDispatch(func(_ *program.Section, d *program.Dispatch) {
		if _, ok := at[string(d.Constants)]; ok || len(d.Constants) == 0 {
			return
		}
		at[string(d.Constants)] = uint64(len(packed))
		packed = append(packed, d.Constants...)
		packed = append(packed, make([]byte, alignUp(uint64(len(packed)), align)-uint64(len(packed)))...)
	})
	if len(packed) == 0 {
		packed = make([]byte, align)
	}
	return at, packed
}

// eachDispatch visits the program in order.
func (m *Model) eachDispatch(visit func(*program.Section, *program.Dispatch)) {
	for _, s := range m.Program.Sections {
		for _, v := range s.Variants {
			for _, d := range v.Dispatches {
				visit(s, d)
			}
		}
	}
}

// tableBuffer is a table to create.
type tableBuffer struct {
	to    **gpu.Buffer
	name  string
	size  uint64 // 0: not needed
	usage gpu.Usage
}

const storageUsage = gpu.UsageStorage | gpu.UsageCopyDst | gpu.UsageCopySrc

func (m *Model) makeTableBuffers(all []tableBuffer) error {
	for _, x := range all {
		if x.size == 0 {
			continue
		}
		var err error
		if *x.to, err = m.device.NewBuffer(gpu.Table, x.name, x.size, x.usage); err != nil {
			return err
		}
	}
	return nil
}

// makeTables creates the tables and writes the constants.
func (m *Model) makeTables() (*tables, error) {
	size, t := m.sizes, &tables{}
	const uniform = gpu.UsageUniform | gpu.UsageCopyDst
	err := m.makeTableBuffers([]tableBuffer{
		{&t.step, "step", stepBytes, uniform},
		{&t.constants, "constants", size.constants, uniform},
		{&t.picks, "picks", size.picks, storageUsage},
		{&t.residency, "residency", size.residency, storageUsage},
		{&t.entries, "residency entries", size.entries, gpu.UsageCopySrc | gpu.UsageCopyDst},
		{&t.outs, "outs", size.outs, storageUsage},
		{&t.logits, "logits", size.logits, storageUsage},
		{&t.guesses, "guesses", size.guesses, storageUsage},
		{&t.pairs, "pairs", size.pairs, storageUsage},
		{&t.tiles, "tiles", size.tiles, storageUsage},
	})
	if err != nil {
		return t, err
	}
	for i, n := range size.ropes {
		b, err := m.device.NewBuffer(gpu.Table, "rope "+m.Plan.Ropes[i].Name, n, storageUsage)
		if err != nil {
			return t, err
		}
		t.ropes = append(t.ropes, b)
	}
	at, packed := m.packConstants()
	t.at = at
	return t, m.device.Write(t.constants, 0, packed)
}

func (t *tables) release() {
	for _, b := range append([]*gpu.Buffer{t.step, t.constants, t.picks, t.residency, t.entries, t.outs, t.logits, t.pairs, t.tiles, t.guesses}, t.ropes...) {
		if b != nil {
			b.Release()
		}
	}
}

// writeStep tells the kernels about the step.
func (m *Model) writeStep(s program.StepUniform) error {
	b := &m.runner.step
	for i, v := range []uint32{s.T, s.Pos0, s.S, s.Row0, s.O, s.G, s.Chunk} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return m.device.Write(m.tables.step, 0, b[:])
}

// writeOuts names the rows whose logits are wanted: the last step.O.
func (m *Model) writeOuts(s program.StepUniform) error {
	if s.O == 0 {
		return nil
	}
	b := &m.runner.outs
	for i := range s.O {
		binary.LittleEndian.PutUint32(b[4*i:], s.T-s.O+i)
	}
	return m.device.Write(m.tables.outs, 0, b[:4*s.O])
}
