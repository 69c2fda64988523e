// Command host runs mixture-of-experts language models from GGUF files on a GPU
// that need not hold them whole. This package is the command line: flags, wiring
// and printing. What it wires lives in core; how a model loads is in load.go.
//
// Results go to standard output as text or JSON, everything else to standard
// error. The exit code is 0, 1 on any error, or 130 after Ctrl-C.
//
// Start at run and at the command's own file: run.go, eval.go, inspect.go, ...
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/hashicorp/go-hclog"

	"github.com/sluicehost/sluice/core/gpu"
)

func main() {
	gpu.CatchAbort()
	os.Exit(interruptible(func(ctx context.Context) int {
		return run(ctx, os.Args[1:], os.Stdin, forTerminal(os.Stdout), forTerminal(os.Stderr))
	}))
}

// app is what every command works with.
type app struct {
	ctx context.Context
	in  io.Reader
	out io.Writer // results
	err io.Writer // everything else
	log hclog.Logger
}

// cli is the command line.
type cli struct {
	LogLevel string `enum:"trace,debug,info,warn,error,off" default:"warn" placeholder:"LEVEL" help:"Least level of log lines on standard error: trace, debug, info, warn (default), error or off."`
	Verbose  bool   `short:"v" help:"The same as --log-level=debug."`

	Run    runCmd    `cmd:"" help:"Answer a prompt, or continue it."`
	Chat   chatCmd   `cmd:"" help:"Talk with a model, turn by turn."`
	Eval   evalCmd   `cmd:"" help:"Report logits and greedy tokens, JSON lines in and out."`
	Verify verifyCmd `cmd:"" help:"Compare a model with golden cases of a reference implementation."`
	Bench  struct {
		Tokens benchCmd     `cmd:"" default:"withargs" help:"Measure tokens per second (what bench does unless told otherwise)."`
		Disk   benchDiskCmd `cmd:"" help:"Measure how fast a disk gives experts, and say how to read them."`
	} `cmd:"" help:"Measure tokens per second, or the disk."`
	Plan     planCmd     `cmd:"" help:"Show what fits at a GPU budget, and with a trace how fast other budgets would be; needs no GPU."`
	Tokenize tokenizeCmd `cmd:"" help:"Turn text into token ids or back, JSON lines in and out."`
	Render   renderCmd   `cmd:"" help:"Put conversations into a chat template, JSON lines in and out."`
	Ingest   ingestCmd   `cmd:"" help:"Pack a model into a store that runs without its GGUF, from a file or an address."`
	Store    struct {
		Ls     storeLsCmd     `cmd:"" help:"List the stores in the default place."`
		Rm     storeRmCmd     `cmd:"" help:"Delete a store."`
		Verify storeVerifyCmd `cmd:"" help:"Compare all of a store with its checksums."`
	} `cmd:"" help:"Packed models, as ingest makes them."`
	Inspect  inspectCmd  `cmd:"" help:"Show what a GGUF file holds and what would run it."`
	Registry registryCmd `cmd:"" help:"Show the registry: plugins and known model files."`
	Plugin   struct {
		List pluginListCmd `cmd:"" help:"Start every plugin of the registry and show what it speaks."`
		Plan pluginPlanCmd `cmd:"" help:"Show the plan and program that a file's plugin makes; needs no GPU."`
		Lock pluginLockCmd `cmd:"" help:"Write the checksums of the plugins' programs beside the registry."`
	} `cmd:"" help:"Architecture plugins."`
	Version versionCmd `cmd:"" help:"Show the version."`
}

const description = `Runs mixture-of-experts language models from GGUF files on a GPU that need not hold them whole.

Results go to standard output, everything else to standard error; the exit code is 1 on any error.`

// exit is how kong's --help ends the parsing.
type exit int

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exit)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	var c cli
	parser := kong.Must(&c, append(strictNumbers(), kong.Name("host"), kong.Description(description), kong.Writers(helpTo(out), helpTo(errs)), kong.WithHyphenPrefixedParameters(true),
		kong.Exit(func(n int) { panic(exit(n)) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
	if len(args) > 0 && args[0] == "help" { // "help run" is "run --help"
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	if err != nil {
		complain(errs, fmt.Errorf("%w: see %s --help", err, helpOf(err)))
		return 1
	}
	err = command.Run(&app{ctx: ctx, in: in, out: out, err: errs, log: c.logger(errs)})
	var by interrupted
	if errors.As(context.Cause(ctx), &by) {
		return by.code()
	}
	if err != nil {
		complain(errs, err)
		return 1
	}
	return 0
}

// helpOf is the command whose help says more of an error of the command line: that which was read before it.
func helpOf(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		for n := parse.Context.Selected(); n != nil; n = n.Parent {
			switch {
			case n.Type != kong.CommandNode:
			case n.DefaultCmd != nil: // whose flags these are
				return n.DefaultCmd.FullPath()
			default:
				return n.FullPath()
			}
		}
	}
	return "host"
}

// complain prints an error. Names from files may be in it, so what a terminal would obey is
// written as an escape.
func complain(w io.Writer, err error) {
	var b strings.Builder
	for _, r := range strings.TrimRight(err.Error(), "\n") {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	fmt.Fprintf(w, "host: %s\n", b.String())
}

func (c *cli) logger(w io.Writer) hclog.Logger {
	level := hclog.LevelFromString(c.LogLevel)
	if c.Verbose {
		level = min(level, hclog.Debug)
	}
	return hclog.New(&hclog.LoggerOptions{Name: "host", Level: level, Output: w})
}
