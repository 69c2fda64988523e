// Package layer is the library that an architecture's Encode is written with:
// its verbs emit the dispatches of a program, fuse neighbours, and pick kernels
// by type and device. An author never names a section, a buffer or a grid.
//
// The main starting point is the Encoder type.
package layer

import "github.com/sluicehost/sluice/sdk/program"

// Encoder writes a program. Errors are sticky: they are reported together at the end.
type Encoder struct{}

// Plan runs encode without placed weights and fills p's weights, records,
// embedding, ropes, MoE layers and unused tensors from what it asked for.
func Plan(h *program.Header, p *program.Plan, encode func(*Encoder)) error { return nil }

// Encode runs encode over placed weights and returns the finished program.
func Encode(req *program.EncodeRequest, encode func(*Encoder)) (*program.Program, error) {
	return nil, nil
}
