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

// TestChatCommands: what begins with a slash is a command, and no message where there is none of that name.
func TestChatCommands(t *testing.T) {
	t.Parallel()
	needGPU(t)
	chat := func(in string) result {
		return runHost(t, in, "chat", "--model", tiny, "--temp", "0", "-n", "2", "--hide-thinking", "--no-warm")
	}
	r := chat("/help\n/?\n /reset\n// a comment\n/exit\nnot read\n")
	if r.code != 0 || r.stderr != chatCommands+"\n"+chatCommands+"\n" || strings.Count(r.stdout, "\n") < 2 {
		t.Errorf("have code %d, %q and errors %q, want the list twice and two answers", r.code, r.stdout, r.stderr)
	}
	for _, unknown := range []string{"/hepl", "/reset now", "/usr/bin is what?"} {
		r := chat(unknown + "\nHello\n")
		r.fails(t, `have no command "`+unknown+`", want one of these:`, chatCommands)
		if r.stdout != "" {
			t.Errorf("%s: have the answer %q, want none", unknown, r.stdout)
		}
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
