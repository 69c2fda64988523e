package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/core/gpu"
	"github.com/sluicehost/sluice/core/simulate"
)

// typicalGPU is what Vulkan drivers of desktop GPUs have in common, and typicalCPU what lavapipe reports: limits to plan
// by where there is no device.
var (
	typicalGPU = typicalLimits(gpu.Limits{MaxBufferSize: 4<<30 - 128<<20, MaxStorageBinding: 2<<30 - 4})
	typicalCPU = typicalLimits(gpu.Limits{MaxBufferSize: 2 << 30, MaxStorageBinding: 128 << 20, LoopLimit: 65535, CPU: true})
)

func typicalLimits(l gpu.Limits) gpu.Limits {
	l.MaxUniformBinding, l.StorageAlign, l.UniformAlign = 64<<10, 256, 256
	l.MaxStorageBuffersPerStage, l.MaxUniformBuffersPerStage, l.MaxBindingsPerGroup = 32, 12, 1000
	l.MaxWorkgroup.X, l.MaxWorkgroup.Y, l.MaxWorkgroup.Z, l.MaxWorkgroup.Invocations = 1024, 1024, 64, 1024
	l.MaxWorkgroupStorage, l.MaxGroups = 32<<10, 65535
	return l
}

// maxBenchFile is how long what host bench --json prints may be, in bytes.
const maxBenchFile = 16 << 20

// wantBench ends the refusals of another file.
const wantBench = "want what host bench --json prints (host bench --model FILE --out FILE writes it)"

// leastToken is the least time of a token that is one after rounding, in seconds: less would be no limit.
const leastToken = 1e-9

// benchLimits are what a host bench --json measured. Of several budgets it says the limits; of one, they are from the tokens
// that it made: the time of a token less what it waited for experts, and the bytes of experts for each second of that wait,
// uploads included.
func benchLimits(path string) (l simulate.Limits, err error) {
	data, err := readLimited(path, maxBenchFile)
	if err != nil {
		return l, fmt.Errorf("--bench: %w", err)
	}
	var b benchReport
	var table struct {
		Limits *machineLimits `json:"limits"`
	}
	for _, v := range []any{&table, &b} { // one by one, not embedded: then errors would name the Go type
		if err := json.Unmarshal(data, v); err != nil {
			return l, fmt.Errorf("--bench: %s: %w: %s", path, jsonFault(err), wantBench)
		}
	}
	if table.Limits != nil {
		return table.Limits.planned(path)
	}
	runs := b.Runs
	if len(runs) > 1 {
		runs = runs[1:] // the first is cold
	}
	var bytes, wait, token float64
	bad := b.Decode < 1
	for i, x := range runs {
		bad = bad || x.DecodeRead < 0 || x.DecodeWait < 0 // in a sum they could make up for each other
		bytes, wait = bytes+float64(x.DecodeRead), wait+x.DecodeWait
		if each := (x.Decode - x.DecodeWait) / float64(max(b.Decode, 1)); i == 0 || each < token {
			token = each
		}
	}
	if bad || !(token >= leastToken && token <= maxLimit/1e3) {
		return l, fmt.Errorf("--bench: %s: have no time of tokens, %s", path, wantBench)
	}
	l.Token = time.Duration(token * float64(time.Second))
	if bytes > 0 && wait > 0 {
		l.Disk = bytes / wait
	}
	return l, nil
}

// planned are the limits in the terms of the plan: of several states of the page cache, those of the slowest.
func (m *machineLimits) planned(path string) (l simulate.Limits, err error) {
	l.Upload, l.Token = m.Upload, time.Duration(m.Token*float64(time.Second))
	bad := !(m.Upload >= 0 && m.Upload <= maxRate && (m.Token == 0 || m.Token >= leastToken && m.Token <= maxLimit/1e3))
	for _, x := range m.Caches {
		disk := x.Disk * x.Grows // as the GPU has records
		bad = bad || x.Disk < 0 || x.Grows < 0 || disk > maxRate || disk == 0 && x.Disk > 0 && x.Grows > 0
		if disk > 0 && (l.Disk == 0 || disk < l.Disk) {
			l.Disk = disk
		}
	}
	if bad || !l.Known() {
		return simulate.Limits{}, fmt.Errorf("--bench: %s: have no limits, %s", path, wantBench)
	}
	return l, nil
}
