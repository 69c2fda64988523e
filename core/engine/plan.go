package engine

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/kernels"
	"github.com/sluicehost/sluice/sdk/place"
	"github.com/sluicehost/sluice/sdk/program"
)

// defaultContext is how many tokens a session holds unless asked otherwise.
const defaultContext = 4096

// defaultChunk is how many tokens of a prompt one step takes unless asked otherwise.
const defaultChunk = 256

// maxOuts is how many rows of logits one step gives: prompts want one, evaluations a few.
const maxOuts = 8

// Planned is what a planner and sdk/place make of a file for a device: all of a model that needs
// no GPU. It has passed the validator.
type Planned struct {
	Plan    *program.Plan
	Program *program.Program
	Weights []*program.Placed
	Records []*program.PlacedRecord
	Context int // tokens a session can hold
	Chunk   int // most tokens of one step
}

// Ask asks a planner for the plan and program of a header, places the weights between, and
// validates both. device has the limits and alignments; how much a step and a session hold comes
// from o. Errors of the planner and the validator come back as they are.
func Ask(ctx context.Context, h *program.Header, p Planner, device program.Bounds, o Options) (*Planned, error) {
	m, limits := &Planned{}, device.Limits
	var err error
	if m.Plan, err = p.Plan(ctx, h); err != nil {
		return nil, err
	}
	if err := program.ValidatePlan(h, m.Plan); err != nil {
		return nil, invalid(m.Plan, err)
	}
	if m.Weights, err = place.Weights(h, m.Plan, limits.MaxBinding); err != nil {
		return nil, err
	}
	if m.Records, err = place.Records(h, m.Plan, limits.MaxBinding); err != nil {
		return nil, err
	}
	if m.Context, err = contextLength(o.Context, int(m.Plan.Model.Context)); err != nil {
		return nil, err
	}
	m.Program, err = p.Encode(ctx, &program.EncodeRequest{Header: h, Plan: m.Plan, Limits: limits, KvF32: o.KVF32,
		Weights: m.Weights, Records: m.Records})
	if err != nil {
		return nil, err
	}
	m.Chunk = chunkLength(o.Chunk, m.Context, m.Program)
	device.Chunk, device.Outs, device.Context = uint64(m.Chunk), uint64(m.outs()), uint64(m.Context)
	if err := program.Validate(m.Plan, m.Weights, m.Records, m.Program, device); err != nil {
		return nil, m.fault(device, err)
	}
	return m, nil
}

// fault says whose fault it is that a program can't run: that of who asked for so long a
// context or chunk, if short ones would do, else the plugin's.
func (m *Planned) fault(device program.Bounds, err error) error {
	const short = 16
	device.Chunk, device.Context = min(device.Chunk, short), min(device.Context, short)
	device.Outs = min(device.Outs, device.Chunk)
	if program.Validate(m.Plan, m.Weights, m.Records, m.Program, device) != nil {
		return invalid(m.Plan, err)
	}
	return fmt.Errorf("engine: a context of %d tokens and a chunk of %d are too much for this GPU: choose a smaller --ctx or --chunk: %w", m.Context, m.Chunk, err)
}

// DeviceBounds are a device's limits and alignments as the validator takes them.
func DeviceBounds(l gpu.Limits) program.Bounds {
	return program.Bounds{Limits: DeviceLimits(l), StorageAlign: uint32(l.StorageAlign), UniformAlign: uint32(l.UniformAlign), MaxBuffer: l.MaxBufferSize}
}

// checkLoops refuses dispatches that a device with a loop limit would silently cut short, at
// the longest context and chunk. A plugin's own kernels are its author's care.
func (m *Planned) checkLoops(limits *program.Limits) error {
	if limits.LoopLimit == 0 {
		return nil
	}
	var loops kernels.LoopCounter
	for _, s := range m.Program.Sections {
		for _, v := range s.Variants {
			step := program.StepUniform{T: uint32(m.Chunk), S: uint32(m.Context), O: uint32(m.outs()), Chunk: uint32(m.Chunk)}
			if v.Max > 0 {
				step.T = min(step.T, v.Max)
			}
			for _, d := range v.Dispatches {
				k := m.Program.Kernels[d.Kernel]
				n, err := loops.Iterations(k, step, d.Constants)
				if err != nil {
					continue // the plugin's own, or from another version of the library
				}
				if err := kernels.WithinLoops(k, n, step, limits); err != nil {
					return fmt.Errorf("engine: %s: with a context of %d and a chunk of %d: %w: choose a smaller --ctx or --chunk, or a GPU", d.Label, m.Context, m.Chunk, err)
				}
			}
		}
	}
	return nil
}

// invalid says whose fault a broken plan is.
func invalid(p *program.Plan, err error) error {
	return fmt.Errorf("the plugin for %.100q returned an invalid plan; please report it to the plugin's author: %w", p.GetModel().GetArchitecture(), err)
}

// contextLength is how many tokens a session holds: what was asked for, no more than the file allows.
func contextLength(asked, file int) (int, error) {
	switch {
	case asked < 0:
		return 0, fmt.Errorf("engine: context: have %d tokens, want at least 1", asked)
	case asked == 0:
		return min(defaultContext, file), nil
	case asked > file:
		return 0, fmt.Errorf("engine: context: have %d tokens, want at most the file's context_length %d", asked, file)
	}
	return asked, nil
}

// chunkLength is how many tokens one step takes: what was asked for, no more than a session
// holds or every section of the program has a variant for.
func chunkLength(asked, context int, p *program.Program) int {
	if asked <= 0 {
		asked = defaultChunk
	}
	n := min(asked, context)
	for _, s := range p.GetSections() {
		if s.GetKind() != program.Kind_HEAD {
			n = min(n, covered(s, n))
		}
	}
	return max(n, 1)
}

// covered is the greatest row count up to n that a section has variants for, from 1 on.
func covered(s *program.Section, n int) int {
	have := 0
	for have < n {
		v := s.Pick(uint32(have + 1))
		switch {
		case v == nil:
			return have
		case v.GetMax() == 0:
			return n
		}
		have = int(min(v.GetMax(), uint32(n)))
	}
	return have
}

// DeviceLimits are a device's limits as a plugin is told them.
func DeviceLimits(l gpu.Limits) *program.Limits {
	return &program.Limits{
		MaxBinding:     l.MaxStorageBinding,
		MaxBindings:    l.MaxStorageBuffersPerStage,
		MaxInvocations: l.MaxWorkgroup.Invocations,
		WorkgroupBytes: l.MaxWorkgroupStorage,
		MaxGroups:      l.MaxGroups,
		LoopLimit:      uint32(l.LoopLimit),
		Cpu:            l.CPU,
	}
}
