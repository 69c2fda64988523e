package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/stream"
)

// statsFlag asks for a report.
type statsFlag struct {
	StatsJSON string `name:"stats-json" placeholder:"FILE" help:"At the end write counts, bytes and times to this file as JSON (docs/stats.md), in place of what is there; - is standard output."`
}

// statsReport is what a run took. Times are in seconds.
type statsReport struct {
	Model    string        `json:"model"`
	Device   string        `json:"device"`
	Load     float64       `json:"load_seconds"` // all until the first token could begin
	Compile  float64       `json:"compile_seconds"`
	Kernels  int           `json:"kernels"` // compiled
	GPU      gpuReport     `json:"gpu"`
	Tokens   int           `json:"tokens"` // that went through the model
	Steps    int           `json:"steps"`
	Waves    int           `json:"waves"` // of experts, beyond one a layer and step
	Read     int64         `json:"bytes_read"`
	FromRAM  int64         `json:"bytes_from_ram"` // of experts, by --ram-cache
	Reading  readingReport `json:"reading"`
	Back     int           `json:"readbacks"`
	PerTok   float64       `json:"readbacks_per_token"`
	Stops    int           `json:"stops"` // layers of one-token steps that waited for an expert
	Time     timeReport    `json:"seconds"`
	Experts  expertReport  `json:"experts"`
	PerToken *tokenReport  `json:"per_token,omitempty"` // of host run and chat: of the tokens made; else of all
	Run      *runReport    `json:"run,omitempty"`
}

// gpuReport is the memory of the GPU in bytes, as reserved.
type gpuReport struct {
	Budget    string                  `json:"budget"`
	Kinds     map[gpu.Kind]kindReport `json:"bytes"`
	Total     kindReport              `json:"total"`
	Peak      uint64                  `json:"peak"`      // the most there ever was
	Requested kindReport              `json:"requested"` // what buffers were asked for: the total without what rounding up costs
}

// kindReport is a kind of memory: what was predicted, and what there is.
type kindReport struct {
	Predicted uint64 `json:"predicted"`
	Actual    uint64 `json:"actual"`
}

// timeReport is where the time of steps went. The rest is the host's own work.
type timeReport struct {
	GPUWait  float64 `json:"gpu_wait"`
	DiskWait float64 `json:"disk_wait"` // for experts: read, packed and uploaded
	Upload   float64 `json:"upload"`    // of experts from memory, all readers together; mostly within disk_wait
	Encode   float64 `json:"encode"`    // recording and submitting
}

// expertReport says how experts were found.
type expertReport struct {
	All      int `json:"all"`      // of all layers
	Slots    int `json:"slots"`    // how many fit on the GPU at once
	Resident int `json:"resident"` // there at the end
	countReport
	Recall float64       `json:"guess_recall"`
	Layers []layerReport `json:"layers"`
}

type layerReport struct {
	Layer int `json:"layer"`
	countReport
}

type countReport struct {
	Hits      int64 `json:"hits"`
	Late      int64 `json:"late"` // on their way when asked for
	Misses    int64 `json:"misses"`
	Evictions int64 `json:"evictions"`
	Guessed   int64 `json:"guessed"` // read ahead of need
	Useful    int64 `json:"useful"`  // of them, asked for in time or while they came
	Wasted    int64 `json:"wasted"`  // of them, gone before that
	Filled    int64 `json:"filled"`  // read into free slots before anything asked
}

func counts(c stream.Counters) countReport {
	return countReport{c.Hits, c.Late, c.Misses, c.Evictions, c.Guessed, c.Useful, c.Wasted, c.Filled}
}

func (c *countReport) add(x countReport) {
	c.Hits += x.Hits
	c.Late += x.Late
	c.Misses += x.Misses
	c.Evictions += x.Evictions
	c.Guessed += x.Guessed
	c.Useful += x.Useful
	c.Wasted += x.Wasted
	c.Filled += x.Filled
}

// runReport is of host run alone.
type runReport struct {
	Prompt    int     `json:"prompt_tokens"`
	Generated int     `json:"generated_tokens"`
	Prefill   float64 `json:"prefill_seconds"`
	Decode    float64 `json:"decode_seconds"` // of all generated tokens but the first, whose logits are the prompt's
	End       string  `json:"end"`
}

// report is what the model has taken so far.
func (l *loaded) report() *statsReport {
	s := l.model.Stats()
	r := &statsReport{
		Model: l.path, Device: l.device.Info().String(), Load: l.took.Seconds(), Compile: l.model.Compile.Seconds(), Kernels: l.model.Kernels(),
		Tokens: s.Tokens, Steps: s.Steps, Waves: s.Waves, Read: l.model.BytesRead(), Back: s.Readbacks, PerTok: float64(s.Readbacks) / float64(max(s.Tokens, 1)), Stops: s.Stops,
		Time: timeReport{s.GPUWait.Seconds(), s.DiskWait.Seconds(), s.Upload.Seconds(), s.Encode.Seconds()},
	}
	l.reading.report(r)
	m := l.device.Memory()
	r.GPU = gpuReport{Budget: l.budget, Kinds: map[gpu.Kind]kindReport{}, Total: kindReport{l.model.Budget.Total(), m.Total}, Peak: m.PeakTotal, Requested: kindReport{l.model.Budget.Requested, m.Requested}}
	for kind, n := range l.model.Budget.ByKind() {
		r.GPU.Kinds[kind] = kindReport{n, m.Live[kind]}
	}
	r.Experts.Layers = []layerReport{}
	for _, c := range l.model.Counters(nil) {
		x := counts(c)
		r.Experts.add(x)
		r.Experts.Layers = append(r.Experts.Layers, layerReport{c.Layer, x})
	}
	slices.SortFunc(r.Experts.Layers, func(a, b layerReport) int { return cmp.Compare(a.Layer, b.Layer) }) // counters go by record layout
	r.Experts.All = len(r.Experts.Layers) * int(l.model.Plan.Model.Experts)
	r.Experts.Slots, r.Experts.Resident, r.Experts.Recall = l.model.Slots(), len(l.model.Hot()), r.Experts.recall()
	r.PerToken = l.since(mark{})
	return r
}

// report adds what a generation alone knows.
func (g *generation) report() *statsReport {
	r := g.loaded.report()
	r.PerToken = nil
	if g.decoding {
		r.PerToken = g.since(g.decoded)
	}
	r.Run = &runReport{g.prompted, g.made, g.prefill.Seconds(), g.decode.Seconds(), g.end}
	return r
}

// statsFile is where a report goes; nil is nowhere.
type statsFile struct {
	io.Writer
	file *outputFile // nil for standard output
}

// open makes or opens the file before the work is done.
func (f statsFlag) open(a *app) (*statsFile, error) {
	switch f.StatsJSON {
	case "":
		return nil, nil
	case "-":
		return &statsFile{Writer: a.out}, nil
	}
	file, err := createOutput("--stats-json", f.StatsJSON)
	if err != nil {
		return nil, err
	}
	return &statsFile{file, file}, nil
}

// close ends the file, where that was not done.
func (f *statsFile) close() (err error) {
	if f != nil && f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	return err
}

// write writes the report and ends the file.
func (f *statsFile) write(r *statsReport) error {
	if f == nil {
		return nil
	}
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	if closed := f.close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("--stats-json: %w", err)
	}
	return nil
}
