package main

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehost/sluice/core/engine"
	"github.com/sluicehost/sluice/core/gguf"
	"github.com/sluicehost/sluice/core/store"
	"github.com/sluicehost/sluice/sdk/place"
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

// planned is everything that a plugin and sdk/place make of a file.
type planned struct {
	plan    *program.Plan
	weights []*program.Placed
	records []*program.PlacedRecord
	program *program.Program
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
	x, err := c.ask(a, process, store.Header(f))
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if c.JSON {
		return x.printJSON(a)
	}
	return program.Text(a.out, x.plan, x.weights, x.records, x.program)
}

// ask goes the way of engine.Load, without a device.
func (c *pluginPlanCmd) ask(a *app, p engine.Planner, h *program.Header) (x planned, err error) {
	limits := c.limits()
	if x.plan, err = p.Plan(a.ctx, h); err != nil {
		return x, err
	}
	if err := program.ValidatePlan(h, x.plan); err != nil {
		return x, invalid(err)
	}
	if x.weights, err = place.Weights(h, x.plan, limits.MaxBinding); err != nil {
		return x, err
	}
	if x.records, err = place.Records(h, x.plan, limits.MaxBinding); err != nil {
		return x, err
	}
	x.program, err = p.Encode(a.ctx, &program.EncodeRequest{Header: h, Plan: x.plan, Limits: limits, KvF32: c.KV == "f32", Weights: x.weights, Records: x.records})
	if err != nil {
		return x, err
	}
	context := min(int(x.plan.GetModel().GetContext()), planContext)
	err = program.Validate(x.plan, x.weights, x.records, x.program, program.Bounds{
		Limits: limits, Chunk: uint64(engine.ChunkLength(0, context, x.program)), Outs: 1, Context: uint64(context),
	})
	if err != nil {
		return x, invalid(err)
	}
	return x, nil
}

func invalid(err error) error {
	return fmt.Errorf("the plugin returned an invalid plan; please report it to the plugin's author: %w", err)
}

// planContext is the context that a plan is validated for, as run has it by default.
const planContext = 4096

// printJSON writes the messages in protobuf's JSON form.
func (x planned) printJSON(a *app) error {
	raw := func(m proto.Message) (json.RawMessage, error) { return protojson.Marshal(m) }
	out := struct {
		Plan    json.RawMessage   `json:"plan"`
		Weights []json.RawMessage `json:"weights"`
		Records []json.RawMessage `json:"records"`
		Program json.RawMessage   `json:"program"`
	}{Weights: []json.RawMessage{}, Records: []json.RawMessage{}}
	var err error
	if out.Plan, err = raw(x.plan); err != nil {
		return err
	}
	for _, w := range x.weights {
		m, err := raw(w)
		if err != nil {
			return err
		}
		out.Weights = append(out.Weights, m)
	}
	for _, r := range x.records {
		m, err := raw(r)
		if err != nil {
			return err
		}
		out.Records = append(out.Records, m)
	}
	if out.Program, err = raw(x.program); err != nil {
		return err
	}
	return a.printJSON(out)
}
