package main

import (
	"context"
	"strings"
	"testing"
)

// TestChat: a conversation says the same whether its turns re-use the session by
// snapshots or read everything anew, and /reset forgets.
func TestChat(t *testing.T) {
	needGPU(t)
	const in = "Hello there\n\nWho are you?\n/reset\nHello there\n/exit\nnot read\n"
	var outs []string
	for _, snapshots := range []string{"0", "2"} {
		r := runHost(t, in, "chat", "--model", tiny, "--kv", "f32", "--temp", "0", "-n", "8", "--snapshots", snapshots, "--hide-thinking")
		if r.code != 0 || r.stderr != "" {
			t.Fatalf("have code %d and errors %q, want 0 and none", r.code, r.stderr)
		}
		outs = append(outs, r.stdout)
	}
	if outs[0] != outs[1] {
		t.Errorf("have %q without snapshots and %q with them", outs[0], outs[1])
	}
	answers := strings.SplitAfter(outs[0], "\n")
	if len(answers) != 4 || answers[0] != answers[2] || strings.TrimSpace(outs[0]) == "" {
		t.Errorf("have the answers %q, want three, the last as the first", answers)
	}
}

// TestInterrupts: Ctrl-C stops what can be stopped, once; then it is the program's.
func TestInterrupts(t *testing.T) {
	i := &interrupts{}
	if i.take() {
		t.Error("taken, want nothing to stop")
	}
	ctx, done := stoppable(context.WithValue(context.Background(), interruptsKey{}, i))
	if !i.take() || ctx.Err() == nil || i.take() {
		t.Errorf("have the context's error %v, want it stopped once", ctx.Err())
	}
	done()
	ctx, done = stoppable(context.WithValue(context.Background(), interruptsKey{}, i))
	done()
	if i.take() {
		t.Error("taken after it was given back")
	}
	if ctx, done := stoppable(context.Background()); ctx.Err() != nil {
		t.Error("want it to work without interrupts")
	} else {
		done()
	}
}
