package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/sdk/program"
)

// KernelTime is what a kernel cost in all steps since the model was loaded.
type KernelTime struct {
	Kernel     string
	Dispatches int
	Time       time.Duration // on the GPU
}

// profile measures every dispatch by itself. It makes steps slow: each dispatch is a submit of its own.
type profile struct {
	timer *gpu.Timer
	times map[uint32]*KernelTime // by kernel
}

// Profile gives the GPU time of each kernel, the most expensive first; nil without Options.Profile.
func (m *Model) Profile() []KernelTime {
	if m.profile == nil {
		return nil
	}
	var out []KernelTime
	for _, t := range m.profile.times {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b KernelTime) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kernel, b.Kernel))
	})
	return out
}

// profileStamps are before and after a dispatch.
const profileStamps = 2

func (m *Model) makeProfile(ctx context.Context) error {
	t, err := m.device.NewTimer(ctx, "profile", profileStamps)
	m.profile = &profile{timer: t, times: map[uint32]*KernelTime{}}
	return err
}

// dispatch runs one dispatch by itself and books its time.
func (p *profile) dispatch(ctx context.Context, m *Model, d *program.Dispatch, g *gpu.BindGroup, grid [3]uint32) error {
	var c gpu.Commands
	c.Timestamp(p.timer, 0)
	c.Dispatch(m.code.pipelines[d.Kernel], g, grid[0], grid[1], grid[2])
	c.Timestamp(p.timer, 1)
	c.ResolveTimer(p.timer, profileStamps)
	if err := m.experts.submit(nil, &c); err != nil {
		return err
	}
	var stamps [profileStamps]time.Duration
	if err := p.timer.Read(ctx, stamps[:]); err != nil {
		return err
	}
	t := p.times[d.Kernel]
	if t == nil {
		t = &KernelTime{Kernel: m.Program.Kernels[d.Kernel].Name}
		p.times[d.Kernel] = t
	}
	t.Dispatches++
	t.Time += stamps[1] - stamps[0]
	return nil
}
