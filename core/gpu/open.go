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
	all, err := enumerate()
	if err != nil {
		return nil, err
	}
	defer all.release()
	a, err := all.choose(o.Adapter)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.open()
}

// Adapters lists what Open can choose from, best first. An empty list comes with ErrNoLoader or ErrNoAdapter.
func Adapters() ([]Info, error) {
	opening.Lock()
	defer opening.Unlock()
	all, err := enumerate()
	if err != nil {
		return nil, err
	}
	defer all.release()
	out := make([]Info, len(all.list))
	for i, a := range all.list {
		out[i] = a.info
	}
	return out, nil
}

// adapter is a GPU that can be opened.
type adapter struct {
	a    *wgpu.Adapter
	info Info
}

// adapters are all GPUs of an instance, best first.
type adapters struct {
	inst *wgpu.Instance
	list []adapter
}

func (all adapters) release() {
	for _, a := range all.list {
		a.a.Release()
	}
	all.inst.Release()
}

// enumerate makes an instance of the system's own backend and lists its adapters.
func enumerate() (adapters, error) {
	if err := prepareSystem(); err != nil {
		return adapters{}, err
	}
	all := adapters{inst: newInstance(uint32(systemBackend()))}
	if all.inst == nil {
		return adapters{}, fmt.Errorf("gpu: %w: the graphics library made no instance", ErrNoAdapter)
	}
	for _, a := range all.inst.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: systemBackend()}) {
		all.list = append(all.list, adapter{a, adapterInfo(a)})
	}
	if len(all.list) == 0 {
		all.release()
		why := ""
		if s := lastLog(); s != "" {
			why = " (" + s + ")"
		}
		return adapters{}, fmt.Errorf("gpu: %w%s: %s", ErrNoAdapter, why, adapterHint)
	}
	slices.SortStableFunc(all.list, func(a, b adapter) int { return a.info.preference() - b.info.preference() })
	return all, nil
}

const adapterHint = "install the driver of your GPU, or the CPU driver (Debian: apt install mesa-vulkan-drivers)"

// systemBackend is the one backend used on this system.
func systemBackend() wgpu.InstanceBackend {
	switch runtime.GOOS {
	case "darwin":
		return wgpu.InstanceBackendMetal
	case "windows":
		return wgpu.InstanceBackendDX12
	}
	return wgpu.InstanceBackendVulkan
}

// prepareSystem checks for the loader and sets what drivers complain about on stderr when it is missing.
func prepareSystem() error {
	if systemBackend() != wgpu.InstanceBackendVulkan {
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

// choose takes the first adapter whose name or driver contains name.
func (all adapters) choose(name string) (adapter, error) {
	var have []string
	for _, a := range all.list {
		if strings.Contains(strings.ToLower(a.info.Name+" "+a.info.Driver), strings.ToLower(name)) {
			return a, nil
		}
		have = append(have, a.info.String())
	}
	return adapter{}, fmt.Errorf("gpu: %w: have %s, want one named %q: choose one of these", ErrNoAdapter, strings.Join(have, ", "), name)
}

func (a adapter) open() (*Device, error) {
	var features []uint32
	has := func(f wgpu.FeatureName) bool {
		if !a.a.HasFeature(f) {
			return false
		}
		features = append(features, uint32(f))
		return true
	}
	stamps, mappable := has(wgpu.FeatureNameTimestampQuery), has(wgpu.NativeFeatureMappablePrimaryBuffers)
	reported := adapterLimits(a.a)
	n, why := openNative(a.a, askLimits(reported), features)
	if n.c == nil {
		return nil, fmt.Errorf("gpu: %s: no device: %s", a.info, libraryText(why))
	}
	return newDevice(n, a.info, deviceLimits(reported, a.info, stamps, mappable)), nil
}
