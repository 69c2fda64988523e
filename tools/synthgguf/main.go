// Command synthgguf writes GGUF files of published models' true shapes, or of fewer of their layers, with random weights: to
// measure on files of real size without downloading them. What is in them, and what is realistic about it, is package
// synth's matter; here are flags, the trace check's table (check.go), traces (record.go) and the writing of a file (write.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
	"github.com/sluicehost/sluice/tools/synthgguf/synth"
)

type cli struct {
	Arch     string  `required:"" placeholder:"NAME" help:"Architecture: bailingmoe3, gemma4, lfm2moe or qwen35moe."`
	Shape    string  `required:"" placeholder:"NAME" help:"Size within the architecture, as 24b-a2b; a wrong one lists them all."`
	Layers   int     `placeholder:"N" help:"Only the first N layers (default: all)."`
	Type     string  `default:"q4_0" placeholder:"TYPE" help:"Quantization: q4_0, q8_0 or q4_k_m (default ${default})."`
	MTP      bool    `name:"mtp" help:"Store the multi-token prediction block, too, as the published bailingmoe3 files do. Nothing runs it."`
	Seed     uint64  `placeholder:"N" default:"1" help:"Seed of all randomness (default ${default})."`
	Skew     float64 `placeholder:"X" help:"How much some experts are more popular than others whatever the token: 0 (default) for not at all, 1 for as much as what depends on the token."`
	Locality float64 `placeholder:"Y" default:"${locality}" help:"Share of a router's input that stays as long as the topic, 0 to 1 (default ${default}, close to published traces)."`
	Dwell    int     `placeholder:"N" default:"${dwell}" help:"Tokens that a topic lasts in the mean; 0: for ever (default ${default})."`

	Out   string `short:"o" placeholder:"FILE" xor:"what" required:"" help:"Write the file."`
	Force bool   `help:"Overwrite FILE."`

	TraceOut string `placeholder:"FILE" xor:"what" required:"" help:"Write no model but a routing trace (docs/trace-format.md): what all routers pick along a simulated continuation."`

	Recall string `placeholder:"X,Y,…" default:"${recall}" help:"Share of a layer's picks that --trace-out lets be guessed one MoE layer ahead, two, and so on; empty for no guesses (default ${default}, close to trained models)."`

	TraceCheck  bool `xor:"what" required:"" help:"Write no file: simulate the routers along a continuation, and print how often caches of several sizes hit."`
	TraceTokens int  `placeholder:"N" default:"4000" help:"Tokens to simulate (default ${default})."`
	TraceLayers int  `placeholder:"N" help:"Layers that --trace-check simulates, spread over the model (default 3, or all of fewer)."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "synthgguf: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "synthgguf: %v\n", err)
		os.Exit(1)
	}
}

// run is the program: results to stdout, progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c cli
	exit := -1
	parser, err := kong.New(&c, kong.Name("synthgguf"), kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }),
		kong.Description("Writes GGUF files of published models' shapes with random weights."),
		kong.Vars{"locality": fmt.Sprint(synth.DefaultLocality), "dwell": fmt.Sprint(synth.DefaultDwell), "recall": DefaultRecall})
	if err != nil {
		return err
	}
	_, err = parser.Parse(args)
	if exit == 0 { // help
		return nil
	}
	if err != nil {
		return err
	}
	m, err := synth.New(synth.Options{
		Arch: c.Arch, Shape: c.Shape, Type: c.Type, Layers: c.Layers, MTP: c.MTP,
		Seed: c.Seed, Skew: c.Skew, Locality: c.Locality, Dwell: c.Dwell,
	})
	if err != nil {
		return err
	}
	if c.TraceCheck {
		return check(ctx, stdout, m, c.Seed, c.TraceTokens, c.TraceLayers)
	}
	if c.TraceOut != "" {
		recall, err := recalls(c.Recall)
		if err != nil {
			return err
		}
		return record(ctx, stderr, m, c.Seed, c.TraceTokens, recall, c.TraceOut, c.Force)
	}
	return write(ctx, stderr, m, c.Out, c.Force)
}
