package main

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/program"
)

type pluginPlanCmd struct {
	registryFlags
	File string `arg:"" help:"GGUF file; any part of a split model will do."`
	CPU  bool   `name:"cpu" help:"Plan for a CPU device (lavapipe) rather than a typical GPU."`
	KV   string `name:"kv" enum:"f16,f32" default:"f16" help:"Precision of the KV caches: f16 (default) or f32."`
	JSON bool   `name:"json" help:"As JSON: plan, weights, records and program in protobuf's form, kernels with their source."`
}

// Help is the command's long help.
func (pluginPlanCmd) Help() string {
	return `Asks the file's plugin for its plan and program, validates both and shows them, a line per dispatch. It needs no GPU: the limits are those of a typical GPU, or with --cpu of Mesa's CPU driver, so that the output is the same on every machine.`
}

// limits of the devices that plans are shown for: what Vulkan drivers of desktop GPUs have in
// common, and what lavapipe reports.
func (c *pluginPlanCmd) limits() *program.Limits {
	if c.CPU {
		return &program.Limits{MaxBinding: 128 << 20, MaxBindings: 32, MaxInvocations: 1024, WorkgroupBytes: 32 << 10,
			MaxGroups: 65535, LoopLimit: 65535, Cpu: true}
	}
	return &program.Limits{MaxBinding: 2<<30 - 4, MaxBindings: 32, MaxInvocations: 1024, WorkgroupBytes: 32 << 10, MaxGroups: 65535}
}

// Run shows the plan.
func (c *pluginPlanCmd) Run(a *app) error {
	f, err := gguf.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	process, err := a.pluginFor(f, c.File, c.registryFlags)
	if err != nil {
		return err
	}
	defer process.Close()
	x, err := engine.Ask(a.ctx, store.Header(f), process, program.Bounds{Limits: c.limits()}, engine.Options{KVF32: c.KV == "f32"})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if c.JSON {
		return printJSON(a, x)
	}
	return program.Text(a.out, x.Plan, x.Weights, x.Records, x.Program)
}

// printJSON writes the messages in protobuf's JSON form.
func printJSON(a *app, x *engine.Planned) error {
	raw := func(m proto.Message) (json.RawMessage, error) { return protojson.Marshal(m) }
	out := struct {
		Plan    json.RawMessage   `json:"plan"`
		Weights []json.RawMessage `json:"weights"`
		Records []json.RawMessage `json:"records"`
		Program json.RawMessage   `json:"program"`
	}{Weights: []json.RawMessage{}, Records: []json.RawMessage{}}
	var err error
	if out.Plan, err = raw(x.Plan); err != nil {
		return err
	}
	for _, w := range x.Weights {
		m, err := raw(w)
		if err != nil {
			return err
		}
		out.Weights = append(out.Weights, m)
	}
	for _, r := range x.Records {
		m, err := raw(r)
		if err != nil {
			return err
		}
		out.Records = append(out.Records, m)
	}
	if out.Program, err = raw(x.Program); err != nil {
		return err
	}
	return a.printJSON(out)
}
