package gpu_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/gpu/gputest"
)

// TestCopyRate: it measures something, and leaves no buffer behind, whether it ends well or not.
func TestCopyRate(t *testing.T) {
	d := gputest.Open(t)
	before := d.Memory()
	rate, err := d.CopyRate(context.Background(), 10_001, 3, time.Millisecond)
	if err != nil || rate <= 0 {
		t.Errorf("have %v, %v", rate, err)
	}
	if _, err := d.CopyRate(context.Background(), 64, 0, 0); err == nil || !strings.Contains(err.Error(), "have 0 writers") {
		t.Errorf("have %v", err)
	}
	if _, err := d.CopyRate(context.Background(), d.Limits().MaxBufferSize+1, 1, 0); err == nil {
		t.Error("too large: have no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.CopyRate(ctx, 64, 2, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v, want it canceled", err)
	}
	d.SetAllocationHook(func(kind gpu.Kind, _ string, _ uint64) error {
		if kind == gpu.Staging {
			return gpu.ErrOutOfMemory
		}
		return nil
	})
	defer d.SetAllocationHook(nil)
	if _, err := d.CopyRate(context.Background(), 64, 2, 0); !errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("have %v", err)
	}
	if have := d.Memory(); have.Total != before.Total {
		t.Errorf("have %d bytes live, want the %d before", have.Total, before.Total)
	}
}
