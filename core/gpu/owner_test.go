package gpu

import (
	"runtime"
	"sync"
	"testing"
)

// BenchmarkOwner compares ways to make one goroutine at a time use the library: what a call costs before the library is
// reached. It is why the owner goroutine is not locked to a thread.
func BenchmarkOwner(b *testing.B) {
	for _, locked := range []bool{false, true} {
		name := "goroutine"
		if locked {
			name = "locked"
		}
		b.Run(name, func(b *testing.B) {
			reqs, done := make(chan int), make(chan struct{}, 1)
			defer close(reqs)
			go func() {
				if locked {
					runtime.LockOSThread()
				}
				for range reqs {
					done <- struct{}{}
				}
			}()
			for b.Loop() {
				reqs <- 1
				<-done
			}
		})
	}
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // the lock is what is measured
		}
	})
}
