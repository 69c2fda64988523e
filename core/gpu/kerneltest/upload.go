package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// upload makes a buffer per slot of the kernel, in order. What it made comes
// with an error too.
func upload(d *gpu.Device, c Case) ([]*gpu.Buffer, error) {
	var out []*gpu.Buffer
	for _, s := range c.Kernel.Slots {
		data, usage := []byte(nil), gpu.UsageStorage
		switch {
		case s.Access == program.Access_UNIFORM && s.Name == "step":
			data, usage = packStep(c.Step), gpu.UsageUniform
		case s.Access == program.Access_UNIFORM:
			consts, err := Constants(c)
			if err != nil {
				return out, err
			}
			data, usage = consts, gpu.UsageUniform
		case c.Memory[s.Name] == nil:
			return out, fmt.Errorf("nothing is bound to %s", s.Name)
		default:
			data = encode(c.Memory[s.Name], s.Access == program.Access_READ)
		}
		b, err := d.NewBuffer(gpu.Scratch, s.Name, uint64(len(data)), usage|gpu.UsageCopyDst|gpu.UsageCopySrc)
		if err != nil {
			return out, err
		}
		out = append(out, b)
		if err := d.Write(b, 0, data); err != nil {
			return out, err
		}
	}
	return out, nil
}

func releaseAll(buffers []*gpu.Buffer) {
	for _, b := range buffers {
		b.Release()
	}
}

func packStep(s program.StepUniform) []byte {
	var out []byte
	for _, v := range []uint32{s.T, s.Pos0, s.S, s.Row0, s.O, s.G, s.Chunk, 0} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

// Constants lays the case's constants out as the kernel's struct. Every field
// needs a value, every value a field.
func Constants(c Case) ([]byte, error) {
	decl, err := program.ParseWGSL(c.Kernel.Wgsl)
	if err != nil {
		return nil, err
	}
	out := make([]byte, decl.ConstantBytes)
	for _, f := range decl.Constants {
		at := out[f.Offset:]
		switch v := c.Constants[f.Name].(type) {
		case uint32:
			binary.LittleEndian.PutUint32(at, v)
		case float64:
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(v)))
		case [4]uint32:
			for i, w := range v {
				binary.LittleEndian.PutUint32(at[4*i:], w)
			}
		default:
			return nil, fmt.Errorf("constant %s: have a %T", f.Name, v)
		}
	}
	if len(c.Constants) != len(decl.Constants) {
		return nil, fmt.Errorf("have %d constants, the kernel has %d", len(c.Constants), len(decl.Constants))
	}
	return out, nil
}
