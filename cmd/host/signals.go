package main

import (
	"context"
	"os"
	"os/signal"
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

// interruptible runs work with a context that Ctrl-C, SIGTERM or SIGHUP (the terminal is
// closed) ends. A second signal kills the process.
func interruptible(work func(context.Context) int) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	done := make(chan int, 1)
	go func() { done <- work(ctx) }()
	select {
	case code := <-done:
		return code
	case s := <-signals:
		signal.Stop(signals)
		by := interrupted{syscall.SIGINT}
		if s, ok := s.(syscall.Signal); ok {
			by.signal = s
		}
		cancel(by)
		select {
		case code := <-done:
			return code
		case <-time.After(grace):
			return by.code()
		}
	}
}
