package gpu

import (
	"fmt"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"
)

// Info says which GPU a device is.
type Info struct {
	Name    string // e.g. "NVIDIA H200"
	Driver  string // whose driver: the library passes on neither its name nor its version
	Backend string // vulkan, metal, d3d12
	Type    string // discrete, integrated, cpu, unknown
}

// String is one line for messages.
func (i Info) String() string {
	s := i.Name + " (" + i.Type + ", " + i.Backend
	return s + ", " + i.Driver + ")"
}

// Limits are what a device allows; sizes and alignments in bytes.
type Limits struct {
	MaxBufferSize             uint64 // one buffer
	MaxStorageBinding         uint64 // one storage range of a bind group
	MaxUniformBinding         uint64 // one uniform range of a bind group
	StorageAlign              uint64 // offset of a storage range
	UniformAlign              uint64 // offset of a uniform range
	MaxStorageBuffersPerStage uint32 // storage bindings of a kernel
	MaxUniformBuffersPerStage uint32 // uniform bindings of a kernel
	MaxBindingsPerGroup       uint32 // bindings of a kernel, of any type
	MaxWorkgroup              struct{ X, Y, Z, Invocations uint32 }
	MaxWorkgroupStorage       uint32 // var<workgroup> of a kernel
	MaxGroups                 uint32 // workgroups per grid dimension
	LoopLimit                 uint64 // loop iterations after which the driver silently ends an invocation; 0 for none
	CPU                       bool   // the "GPU" is the CPU
	Timestamps                bool   // NewTimer works
	MappableStorage           bool   // UsageMapRead and UsageMapWrite combine with any other usage
}

// largestBuffer is what one allocation can be in practice: 3.9 GiB worked on an H200, 4.0 GiB did not.
const largestBuffer = 4<<30 - 128<<20

// askedBufferSize replaces the reported 2^64-1, which the library takes for "undefined" and turns into 256 MiB.
const askedBufferSize = 1 << 40

// lavapipeLoops is the iteration count after which llvmpipe ends an invocation's loops without an error.
const lavapipeLoops = 65535

func adapterInfo(a *wgpu.Adapter) Info {
	in := a.GetInfo()
	i := Info{Name: in.DriverDescription, Driver: vendorName(in.VendorId), Backend: in.BackendType.String(), Type: "unknown"}
	switch in.AdapterType {
	case wgpu.AdapterTypeDiscreteGPU:
		i.Type = "discrete"
	case wgpu.AdapterTypeIntegratedGPU:
		i.Type = "integrated"
	case wgpu.AdapterTypeCPU:
		i.Type = "cpu"
	}
	return i
}

// vendorName turns a PCI or Khronos vendor id into a name.
func vendorName(id uint32) string {
	names := map[uint32]string{
		0x1002: "AMD", 0x10de: "NVIDIA", 0x8086: "Intel", 0x106b: "Apple", 0x13b5: "ARM", 0x5143: "Qualcomm", 0x1414: "Microsoft", 0x10005: "Mesa",
	}
	if n, ok := names[id]; ok {
		return n
	}
	return fmt.Sprintf("vendor %#x", id)
}

// preference orders adapters: lower is better.
func (i Info) preference() int {
	switch i.Type {
	case "discrete":
		return 0
	case "integrated":
		return 1
	case "cpu":
		return 3
	}
	return 2
}

// askLimits is what the device is requested with: all the adapter has, with the two values that can't be passed back.
func askLimits(reported rawLimits) rawLimits {
	l := reported
	l.buffer_size = min(l.buffer_size, askedBufferSize)
	return l
}

func deviceLimits(l rawLimits, info Info, timestamps, mappable bool) Limits {
	out := Limits{
		MaxBufferSize:             min(uint64(l.buffer_size), largestBuffer) &^ 3,
		MaxStorageBinding:         uint64(l.storage_binding),
		MaxUniformBinding:         uint64(l.uniform_binding),
		StorageAlign:              uint64(l.storage_align),
		UniformAlign:              uint64(l.uniform_align),
		MaxStorageBuffersPerStage: uint32(l.storage_buffers),
		MaxUniformBuffersPerStage: uint32(l.uniform_buffers),
		MaxBindingsPerGroup:       uint32(l.bindings_per_group),
		MaxWorkgroupStorage:       uint32(l.group_storage),
		MaxGroups:                 uint32(l.groups),
		CPU:                       info.Type == "cpu",
		Timestamps:                timestamps,
		MappableStorage:           mappable,
	}
	out.MaxWorkgroup.X, out.MaxWorkgroup.Y, out.MaxWorkgroup.Z = uint32(l.group_x), uint32(l.group_y), uint32(l.group_z)
	out.MaxWorkgroup.Invocations = uint32(l.group_invocations)
	name := strings.ToLower(info.Name + " " + info.Driver)
	if strings.Contains(name, "llvmpipe") || strings.Contains(name, "lavapipe") {
		out.LoopLimit = lavapipeLoops
	}
	return out
}
