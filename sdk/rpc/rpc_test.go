package rpc

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"

	"github.com/sluicehost/sluice/sdk/program"
)

// funcs is a Plugin of functions.
type funcs struct {
	describe func() (*DescribeReply, error)
	plan     func(*program.Header) (*program.Plan, error)
	encode   func(*program.EncodeRequest) (*program.Program, error)
}

func (f funcs) Describe(context.Context) (*DescribeReply, error) { return f.describe() }

func (f funcs) Plan(_ context.Context, h *program.Header) (*program.Plan, error) { return f.plan(h) }

func (f funcs) Encode(_ context.Context, r *program.EncodeRequest) (*program.Program, error) {
	return f.encode(r)
}

func call(t *testing.T, f funcs) (describe, plan, encode error) {
	t.Helper()
	p := InProcess("test", f, hclog.NewNullLogger())
	_, describe = p.Describe(context.Background())
	_, plan = p.Plan(context.Background(), &program.Header{})
	_, encode = p.Encode(context.Background(), &program.EncodeRequest{})
	return describe, plan, encode
}

func TestFaults(t *testing.T) {
	var typedNil *Refusal
	cases := map[string]struct {
		err  error
		boom any
		code codes.Code
		want string // %s is the method
	}{
		"nothing":           {nil, nil, codes.DataLoss, "%s returned neither a "},
		"error":             {errors.New("two\nlines"), nil, codes.Unknown, "%s: two lines"},
		"panic":             {nil, "boom\x1b[2J", codes.Aborted, "plugin test panicked in %s: boom\uFFFD[2J"},
		"panic-error":       {nil, errors.New("bad"), codes.Aborted, "plugin test panicked in %s: bad"},
		"typed-nil-refusal": {typedNil, nil, codes.Aborted, "plugin test panicked in %s: "},
		"long":              {errors.New(strings.Repeat("x", 1<<20)), nil, codes.Unknown, "%s: xxx"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			act := func() error {
				if c.boom != nil {
					panic(c.boom)
				}
				return c.err
			}
			d, p, e := call(t, funcs{
				func() (*DescribeReply, error) { return nil, act() },
				func(*program.Header) (*program.Plan, error) { return nil, act() },
				func(*program.EncodeRequest) (*program.Program, error) { return nil, act() },
			})
			for method, err := range map[string]error{"Describe": d, "Plan": p, "Encode": e} {
				if name == "typed-nil-refusal" && method == "Describe" {
					continue // Describe has no refusals
				}
				var f *Fault
				if !errors.As(err, &f) {
					t.Fatalf("%s: no fault: %v", method, err)
				}
				want := strings.ReplaceAll(c.want, "%s", method)
				if f.Code != c.code || !strings.HasPrefix(f.Text, want) || len(f.Text) > maxText+10 {
					t.Errorf("have %v %.100q, want %v %q", f.Code, f.Text, c.code, want)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = "reason"
	}
	cases := map[string]struct {
		reasons []string
		want    []string
	}{
		"none":  {nil, []string{"no reason given"}},
		"two":   {[]string{"key a: missing", "tensor b:\n\tbad"}, []string{"key a: missing", "tensor b:  bad"}},
		"many":  {many, append(append([]string{}, many[:maxReasons]...), "and 36 more")},
		"long":  {[]string{strings.Repeat("é", maxText)}, []string{strings.Repeat("é", maxText/2) + "…"}},
		"blank": {[]string{""}, []string{""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Refusal{Reasons: c.reasons}
			_, p, e := call(t, funcs{
				func() (*DescribeReply, error) { return &DescribeReply{}, nil },
				func(*program.Header) (*program.Plan, error) { return nil, r },
				func(*program.EncodeRequest) (*program.Program, error) { return nil, errors.Join(r) },
			})
			for _, err := range []error{p, e} {
				var got *Refusal
				if !errors.As(err, &got) {
					t.Fatalf("no refusal: %v", err)
				}
				if got.Error() != strings.Join(c.want, "; ") {
					t.Errorf("have %q, want %q", got.Reasons, c.want)
				}
			}
		})
	}
}

// TestStack checks that the author finds his panic in the log.
func TestStack(t *testing.T) {
	var log bytes.Buffer
	p := InProcess("test", funcs{plan: func(*program.Header) (*program.Plan, error) { panic("here") }},
		hclog.New(&hclog.LoggerOptions{Output: &log}))
	_, err := p.Plan(context.Background(), &program.Header{})
	if err == nil || !strings.Contains(log.String(), "panic in Plan: panic=here") || !strings.Contains(log.String(), "rpc_test.go") {
		t.Errorf("have %v and the log\n%s", err, &log)
	}
}

func TestContextErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	block := make(chan struct{})
	defer close(block)
	p := InProcess("test", funcs{plan: func(*program.Header) (*program.Plan, error) { <-block; return nil, nil }}, hclog.NewNullLogger())
	if _, err := p.Plan(ctx, &program.Header{}); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v, want %v", err, context.Canceled)
	}
}
