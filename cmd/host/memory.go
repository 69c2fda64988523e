package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/sluicehost/sluice/core/gpu"
)

// fallbackBudget is the automatic budget where nothing is known of the GPU's memory.
const fallbackBudget = 4 << 30

// resolve makes bytes of a budget, 0 for all that the model wants, and says how.
func (b budget) resolve(ctx context.Context, d *gpu.Device) (bytes uint64, why string) {
	switch {
	case b.max:
		return 0, "max"
	case !b.auto:
		return b.bytes, size(b.bytes)
	}
	if info := d.Info(); info.Type == "cpu" || info.Type == "integrated" || d.Limits().CPU {
		if n := availableMemory(os.DirFS("/proc")); n > 0 {
			return n / 2, fmt.Sprintf("auto: %s, half of the available memory", size(n/2))
		}
	} else if n := freeVideoMemory(ctx, info); n > 0 {
		return n - n/10, fmt.Sprintf("auto: %s, nine tenths of what the driver reports free", size(n-n/10))
	}
	return fallbackBudget, fmt.Sprintf("auto: %s, the default: nothing reports the GPU's memory", size(fallbackBudget))
}

// freeVideoMemory asks the driver of a GPU with memory of its own; 0 is unknown. Vulkan's name
// tells the vendor but not which of several like cards it is: then the fullest counts.
func freeVideoMemory(ctx context.Context, info gpu.Info) uint64 {
	name := strings.ToLower(info.Name + " " + info.Driver)
	switch {
	case strings.Contains(name, "nvidia"):
		return nvidiaFree(nvidiaReport(ctx), info.Name)
	case strings.Contains(name, "amd") || strings.Contains(name, "radeon") || strings.Contains(name, "radv"):
		return amdFree(os.DirFS("/sys/class/drm"))
	}
	return 0
}

// availableMemory is MemAvailable of /proc/meminfo in bytes.
func availableMemory(proc fs.FS) uint64 {
	f, err := proc.Open("meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 54)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}

// nvidiaReport is a line "NAME, MiB free" per GPU, as the driver's own tool prints it.
func nvidiaReport(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,memory.free", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// nvidiaFree is the least free memory among the report's GPUs of that name.
func nvidiaFree(report, name string) (least uint64) {
	for line := range strings.Lines(report) {
		i := strings.LastIndex(line, ",")
		if i < 0 || strings.TrimSpace(line[:i]) != name {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(line[i+1:]), 10, 40)
		if err == nil && (least == 0 || n<<20 < least) {
			least = n << 20
		}
	}
	return least
}

// amdFree is the free memory of the largest of amdgpu's cards, the least among several.
func amdFree(drm fs.FS) (free uint64) {
	number := func(file string) uint64 {
		data, err := fs.ReadFile(drm, file)
		if err != nil {
			return 0
		}
		n, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 62)
		return n
	}
	totals, err := fs.Glob(drm, "card*/device/mem_info_vram_total")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var largest uint64
	for _, file := range totals {
		total, used := number(file), number(path.Join(path.Dir(file), "mem_info_vram_used"))
		if left := total - min(used, total); total > largest || total == largest && left < free {
			largest, free = total, left
		}
	}
	return free
}

// size is n bytes for people.
func size(n uint64) string { return humanize.BytesN(n, 3) }
