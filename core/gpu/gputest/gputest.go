// Package gputest opens the GPU for tests: one device for the whole test process. Without an adapter a test is skipped with
// the reason, or fails where the environment says REQUIRE_GPU=1 (CI does). The CPU driver (lavapipe) counts as a GPU.
package gputest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/core/gpu"
)

var open = sync.OnceValues(func() (*gpu.Device, error) {
	return gpu.Open(context.Background(), gpu.Options{Adapter: os.Getenv("GPU_ADAPTER")})
})

// Open returns the process's device; GPU_ADAPTER chooses it by a part of its name. Don't close it: release what you make.
func Open(tb testing.TB) *gpu.Device {
	tb.Helper()
	d, err := open()
	if err != nil {
		Missing(tb, err)
	}
	return d
}

// Missing skips the test for want of a GPU, or fails it where REQUIRE_GPU=1.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv("REQUIRE_GPU") == "1" {
		tb.Fatalf("REQUIRE_GPU=1: %v", err)
	}
	tb.Skipf("no GPU: %v", err)
}
