package sdk

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/sdk/layer"
	"github.com/sluicehost/sluice/sdk/program"
)

// Plan asks an architecture for the plan of a file: its facts, weights, expert
// records, embedding, rope tables and chat. The error is a *Refusal where the
// file can't be run.
func Plan(a Architecture, h *program.Header) (*program.Plan, error) {
	m := NewMetadata(h)
	if err := checkBlocks(m, h); err != nil {
		return nil, err
	}
	model, err := configure(a, m)
	if err != nil {
		return nil, err
	}
	f := model.Facts()
	plan := &program.Plan{Model: &program.Model{
		Architecture: m.Architecture(),
		Layers:       uint32(f.Layers),
		Hidden:       uint32(f.Hidden),
		Vocab:        uint32(f.Vocab),
		Experts:      uint32(f.Experts),
		TopK:         uint32(f.TopK),
		Context:      uint32(f.Context),
	}}
	if err := layer.Plan(h, plan, model.Encode); err != nil {
		return nil, refuse(err)
	}
	if c, ok := model.(ModelWithChat); ok {
		plan.Chat = chatMessage(c.Chat())
	}
	// The host checks this again; here a file with impossible numbers is still the file's fault.
	if err := program.ValidatePlan(h, plan); err != nil {
		return nil, refuse(err)
	}
	return plan, nil
}

// checkBlocks refuses tensors of blocks behind the file's block_count. The plan would leave
// them unread, as it does those of blocks that predict further tokens, which block_count
// counts; but a model without its last blocks talks nonsense. It comes before Configure,
// which would find lists too long.
func checkBlocks(m *Metadata, h *program.Header) error {
	key := m.arch + ".block_count"
	blocks, ok := asInt(m.values[key])
	if !ok {
		return nil // what is wrong with it, Configure says
	}
	for _, t := range h.GetTensors() {
		name, inBlock := strings.CutPrefix(t.GetName(), "blk.")
		number, _, dotted := strings.Cut(name, ".")
		if i, err := strconv.ParseUint(number, 10, 64); inBlock && dotted && err == nil && i >= uint64(blocks) {
			return &Refusal{Reasons: []string{fmt.Sprintf("key %s: have %d, and tensor %s: want a block_count that counts all blocks: convert the model again",
				key, blocks, t.GetName())}}
		}
	}
	return nil
}

// Encode asks an architecture for its program over weights that the host has placed.
func Encode(a Architecture, req *program.EncodeRequest) (*program.Program, error) {
	model, err := configure(a, NewMetadata(req.GetHeader()))
	if err != nil {
		return nil, err
	}
	prog, err := layer.Encode(req, model.Encode)
	if err != nil {
		return nil, refuse(err)
	}
	return prog, nil
}

// configure runs the author's Configure; what its readers missed counts even
// where the author forgot to ask Err.
func configure(a Architecture, m *Metadata) (Model, error) {
	d := a.Describe()
	if !d.runs(m.Architecture()) {
		return nil, &Refusal{Reasons: []string{fmt.Sprintf(
			"key general.architecture: have %q, plugin %s runs %q", m.Architecture(), d.Name, d.architectures())}}
	}
	model, err := a.Configure(m)
	if merr := m.Err(); merr != nil {
		return nil, merr
	}
	if err != nil {
		return nil, refuse(err)
	}
	return model, nil
}

// refuse makes any error of the author's a refusal, so that it reaches the user as one.
func refuse(err error) error {
	if r, ok := err.(*Refusal); ok { //nolint:errorlint // only a bare refusal passes unchanged
		return r
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		r := &Refusal{}
		for _, e := range many.Unwrap() {
			r.Reasons = append(r.Reasons, e.Error())
		}
		return r
	}
	return &Refusal{Reasons: []string{err.Error()}}
}

func (d Description) architectures() []string {
	if len(d.Architectures) == 0 {
		return []string{d.Name}
	}
	return d.Architectures
}

func (d Description) runs(architecture string) bool {
	for _, a := range d.architectures() {
		if a == architecture {
			return true
		}
	}
	return false
}

func chatMessage(c Chat) *program.Chat {
	return &program.Chat{
		Template:         c.Template,
		Stop:             c.Stop,
		ThinkOpen:        c.ThinkOpen,
		ThinkClose:       c.ThinkClose,
		ThinkPreamble:    c.ThinkPreamble,
		OpensThinking:    c.OpensThinking,
		ThinkingOptional: c.ThinkingOptional,
	}
}
