package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return i.signal.String() }

// code is the exit code of a program that ends by the signal, as shells count.
func (i interrupted) code() int { return 128 + int(i.signal) }

// grace is how long work may take to stop after a signal. What is left then has no state to
// save: plugins end with the host, and the system takes GPU memory back.
const grace = time.Second

// interrupts lets a command take Ctrl-C for itself while something runs that it can stop.
type interrupts struct {
	mu   sync.Mutex
	stop context.CancelFunc
}

// interruptsKey is where a context of interruptible has its interrupts.
type interruptsKey struct{}

// stoppable gives a context that the next Ctrl-C ends, and nothing else; done gives Ctrl-C back.
func stoppable(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	i, _ := ctx.Value(interruptsKey{}).(*interrupts)
	i.set(cancel)
	return ctx, func() {
		i.set(nil)
		cancel()
	}
}

func (i *interrupts) set(stop context.CancelFunc) {
	if i != nil {
		i.mu.Lock()
		i.stop = stop
		i.mu.Unlock()
	}
}

// take stops what runs, once, and says whether there was anything.
func (i *interrupts) take() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	stop := i.stop
	if i.stop = nil; stop == nil {
		return false
	}
	stop()
	return true
}

// interruptible runs work with a context that Ctrl-C, SIGTERM or SIGHUP (the terminal is
// closed) ends. A second signal kills the process.
func interruptible(work func(context.Context) int) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	taken := &interrupts{}
	ctx = context.WithValue(ctx, interruptsKey{}, taken)
	signals := make(chan os.Signal, 1)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	done := make(chan int, 1)
	go func() { done <- work(ctx) }()
	var by interrupted
	for by.signal == 0 {
		select {
		case code := <-done:
			return code
		case s := <-signals:
			if s == os.Interrupt && taken.take() {
				continue
			}
			by.signal = syscall.SIGINT
			if s, ok := s.(syscall.Signal); ok {
				by.signal = s
			}
		}
	}
	signal.Stop(signals)
	cancel(by)
	select {
	case code := <-done:
		return code
	case <-time.After(grace):
		return by.code()
	}
}
