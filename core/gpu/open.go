package gpu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cogentcore/webgpu/wgpu"
)

// Options choose the device.
type Options struct {
	Adapter string // take the adapter whose name or driver contains this, in any case; empty: the strongest
}

// vulkanLoader is the library that the graphics library opens by this name; a test replaces it.
var vulkanLoader = "libvulkan.so.1"

// CatchAbort makes an abort of the graphics library end the process with one clear line on stderr and exit code 1. Go panics,
// os/signal and a SIGABRT or SIGQUIT from outside stay as they are. Call it once, early in main.
func CatchAbort() { catchAbort() }

// opening serialises use of instances: the library keeps one log level and one loader for the process.
var opening sync.Mutex

// Open opens the strongest adapter, or the one Options.Adapter names. Errors: ErrNoLoader, ErrNoAdapter (wrapped), or what
// the driver said. ctx is looked at before the slow parts only.
func Open(ctx context.Context, o Options) (*Device, error) {
	opening.Lock()
	defer opening.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inst, all, err := enumerate()
	if err != nil {
		return nil, err
	}
	defer releaseAll(inst, all)
	a, info, err := choose(all, o.Adapter)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return openAdapter(a, info)
}

// Adapters lists what Open can choose from, best first. An empty list comes with ErrNoLoader or ErrNoAdapter.
func Adapters() ([]Info, error) {
	opening.Lock()
	defer opening.Unlock()
	inst, all, err := enumerate()
	if err != nil {
		return nil, err
	}
	defer releaseAll(inst, all)
	return infos(all), nil
}

func releaseAll(inst *wgpu.Instance, all []*wgpu.Adapter) {
	for _, a := range all {
		a.Release()
	}
	inst.Release()
}

// enumerate makes an instance of the system's own backend and lists its adapters, best first.
func enumerate() (*wgpu.Instance, []*wgpu.Adapter, error) {
	if err := prepareSystem(); err != nil {
		return nil, nil, err
	}
	inst := newInstance(systemBackend())
	if inst == nil {
		return nil, nil, fmt.Errorf("gpu: %w: the graphics library made no instance", ErrNoAdapter)
	}
	all := inst.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: wgpu.InstanceBackend(systemBackend())})
	if len(all) == 0 {
		why := ""
		if s := lastLog(); s != "" {
			why = " (" + s + ")"
		}
		inst.Release()
		return nil, nil, fmt.Errorf("gpu: %w%s: %s", ErrNoAdapter, why, adapterHint)
	}
	slices.SortStableFunc(all, func(a, b *wgpu.Adapter) int { return adapterInfo(a).preference() - adapterInfo(b).preference() })
	return inst, all, nil
}

const adapterHint = "install the driver of your GPU, or mesa-vulkan-drivers for the CPU driver (Debian: apt install mesa-vulkan-drivers)"

// systemBackend is the one backend used on this system.
func systemBackend() uint32 {
	switch runtime.GOOS {
	case "darwin":
		return uint32(wgpu.InstanceBackendMetal)
	case "windows":
		return uint32(wgpu.InstanceBackendDX12)
	}
	return uint32(wgpu.InstanceBackendVulkan)
}

// prepareSystem checks for the loader and sets what the drivers complain about on stderr when it is missing.
func prepareSystem() error {
	if systemBackend() != uint32(wgpu.InstanceBackendVulkan) {
		return nil
	}
	if os.Getenv("XDG_RUNTIME_DIR") == "" {
		if err := os.Setenv("XDG_RUNTIME_DIR", os.TempDir()); err != nil {
			return fmt.Errorf("gpu: XDG_RUNTIME_DIR: %w", err)
		}
	}
	if !hasLibrary(vulkanLoader) {
		return fmt.Errorf("gpu: %w: %s cannot be opened: install it (Debian: apt install libvulkan1)", ErrNoLoader, vulkanLoader)
	}
	return nil
}

func infos(all []*wgpu.Adapter) []Info {
	out := make([]Info, len(all))
	for i, a := range all {
		out[i] = adapterInfo(a)
	}
	return out
}

// choose takes the first adapter (they are sorted) whose name or driver contains name.
func choose(all []*wgpu.Adapter, name string) (*wgpu.Adapter, Info, error) {
	var have []string
	for i, info := range infos(all) {
		if name == "" || strings.Contains(strings.ToLower(info.Name+" "+info.Driver), strings.ToLower(name)) {
			return all[i], info, nil
		}
		have = append(have, info.String())
	}
	return nil, Info{}, fmt.Errorf("gpu: %w: have %s, want one named %q: choose one of these", ErrNoAdapter, strings.Join(have, ", "), name)
}

func openAdapter(a *wgpu.Adapter, info Info) (*Device, error) {
	var features []uint32
	stamps := a.HasFeature(wgpu.FeatureNameTimestampQuery)
	if stamps {
		features = append(features, uint32(wgpu.FeatureNameTimestampQuery))
	}
	mappable := a.HasFeature(wgpu.NativeFeatureMappablePrimaryBuffers)
	if mappable {
		features = append(features, uint32(wgpu.NativeFeatureMappablePrimaryBuffers))
	}
	reported := adapterLimits(a)
	n, why := openNative(a, askLimits(reported), features)
	if n.c == nil {
		return nil, fmt.Errorf("gpu: %s: no device: %s", info, libraryText(why))
	}
	return newDevice(n, info, deviceLimits(reported, info, stamps, mappable)), nil
}
