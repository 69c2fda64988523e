package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// hostIn runs a command line in this process.
func hostIn(ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

const tiny = "../../testdata/models/tiny-lfm2moe.gguf"

// TestUsage: a wrong command line is exit code 1 and one line on standard error.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want string // on standard error
	}{
		"nothing":             {"", `expected one of "run", "chat"`},
		"unknown command":     {"walk", "unexpected argument walk"},
		"unknown flag":        {"run --walk", "unknown flag --walk"},
		"no model":            {"run --raw", "missing flags: --model=FILE"},
		"no file":             {"inspect", `expected "<file>"`},
		"chat flags of --raw": {"run --model x --raw --system y", "they don't go with --raw"},
		"bad --think":         {"run --model x --think maybe", "--think must be one of \"auto\",\"on\",\"off\""},
		"no template":         {"render", "missing flags: --model=FILE or --template=FILE"},
		"missing template":    {"render --template nowhere.jinja", "nowhere.jinja"},
		"bad budget":          {"run --model x --raw --gpu-budget lots", "--gpu-budget: have \"lots\", want auto, max, or a size"},
		"no budget":           {"eval --model x --gpu-budget 0", `have "0"`},
		"bad kv":              {"eval --model x --kv f8", `--kv must be one of "f16","f32" but got "f8"`},
		"bad -n":              {"run --model x --raw -n -1", "-n: have -1 tokens, want 0 or more"},
		"bad number":          {"run --model x --raw -n many", "--tokens: have \"many\", want a whole number such as 8: see host run --help"},
		"bad temperature":     {"run --model x --raw --temp -1", "temperature: have -1"},
		"bad top-k":           {"run --model x --raw --top-k -1", "top-k: have -1"},
		"bad ctx":             {"eval --model x --ctx -1", "--ctx: have -1 tokens"},
		"bad chunk":           {"eval --model x --chunk -1", "--chunk: have -1 tokens"},
		"bad --readers":       {"eval --model x --readers 65", "--readers: have 65, want 1 to 64"},
		"bad --direct":        {"eval --model x --direct maybe", `--direct must be one of "auto","on","off"`},
		"bad --ram-cache":     {"eval --model x --ram-cache much", `have "much", want a size such as`},
		"all agree":           {"verify --model x --refs y --tolerance 0", "--tolerance: have 0, want more than 0 and finite"},
		"bad level":           {"version --log-level=loud", `--log-level must be one of`},
		"bad dev plugin":      {"eval --model x --plugin-dev =y", "want NAME or NAME=PATH"},
		"special alone":       {"tokenize --model x --special", "--special goes with --decode"},
		"registry not there":  {"registry --registry /no/such", "the flag names /no/such: no such file or directory"},
		"lock of no registry": {"plugin lock --registry /no/such", "the flag names /no/such"},
		"no such model":       {"tokenize --model /no/such.gguf", "/no/such.gguf: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := hostIn(t.Context(), "", strings.Fields(c.args)...)
			if code != 1 || out != "" || !strings.HasPrefix(errs, "host: ") || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("have code %d, output %q, errors %q; want 1, nothing and one line with %q", code, out, errs, c.want)
			}
		})
	}
}

// TestComplain: what a file says does not reach the terminal as more than text.
func TestComplain(t *testing.T) {
	var b bytes.Buffer
	complain(&b, errors.New("a\x1b[31m\a\rb\u202e\x7f\xff\n\tcö€'\"\n\n"))
	if want := "host: a\\x1b[31m\\a\\rb\\u202e\\x7f\uFFFD\n\tcö€'\"\n"; b.String() != want {
		t.Errorf("have %q, want %q", b.String(), want)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"help", "run"}, {"plugin", "plan", "--help"}} {
		code, out, errs := hostIn(t.Context(), "", args...)
		if code != 0 || !strings.HasPrefix(out, "Usage: host") || errs != "" {
			t.Errorf("%q: have code %d, output %q, errors %q; want 0 and the help", args, code, out, errs)
		}
	}
}

func TestVersion(t *testing.T) {
	for args, want := range map[string]string{"version": "host unknown (go", "version --json": `"version": "unknown"`} {
		if code, out, _ := hostIn(t.Context(), "", strings.Fields(args)...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: have code %d, output %q", args, code, out)
		}
	}
}

// TestInterrupted: the signal that ended the context makes the exit code, without a message.
func TestInterrupted(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(interrupted{signal})
		code, out, errs := hostIn(ctx, "", "tokenize", "--model", tiny)
		if code != want || out != "" || errs != "" {
			t.Errorf("%v: have code %d, output %q, errors %q; want %d alone", signal, code, out, errs, want)
		}
	}
}

func TestLogLevel(t *testing.T) {
	for args, want := range map[string]hclog.Level{"": hclog.Warn, "-v": hclog.Debug, "--log-level=error": hclog.Error, "--log-level=trace -v": hclog.Trace, "--log-level=off": hclog.Off} {
		var c cli
		c.LogLevel = "warn"
		for _, a := range strings.Fields(args) {
			if level, ok := strings.CutPrefix(a, "--log-level="); ok {
				c.LogLevel = level
			} else {
				c.Verbose = true
			}
		}
		if got := c.logger(&bytes.Buffer{}).GetLevel(); got != want {
			t.Errorf("%q: have level %v, want %v", args, got, want)
		}
	}
}

func TestDevPlugin(t *testing.T) {
	for text, want := range map[string]devPlugin{"a": {"a", ""}, "a=b": {"a", "b"}, "a=b=c": {"a", "b=c"}} {
		var d devPlugin
		if err := d.UnmarshalText([]byte(text)); err != nil || d != want {
			t.Errorf("%q: have %+v, %v, want %+v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "=", "=a", "a="} {
		if err := new(devPlugin).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}
