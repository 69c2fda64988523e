package gpu

/*
#cgo linux LDFLAGS: -ldl
#cgo noescape gpu_encode
#cgo nocallback gpu_encode
#cgo noescape gpu_write
#cgo nocallback gpu_write
#cgo nocallback gpu_poll
#cgo noescape gpu_submit_all
#cgo nocallback gpu_submit_all
#cgo nocallback gpu_submit
#cgo nocallback gpu_sleep
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
)

// handle is an object of the library.
type handle = unsafe.Pointer

// Layouts of the binding's v0.23.0 types, to reach the handles they hide. go.mod pins the version; TestBindingLayout checks.
type (
	oneRef struct{ ref handle }         // Instance, Adapter, Device, ComputePipeline, BindGroup, QuerySet
	twoRef struct{ device, ref handle } // Buffer
)

func bufferRef(b *wgpu.Buffer) handle            { return (*twoRef)(unsafe.Pointer(b)).ref }
func pipelineRef(p *wgpu.ComputePipeline) handle { return (*oneRef)(unsafe.Pointer(p)).ref }
func groupRef(g *wgpu.BindGroup) handle          { return (*oneRef)(unsafe.Pointer(g)).ref }
func querySetRef(q *wgpu.QuerySet) handle        { return (*oneRef)(unsafe.Pointer(q)).ref }
func adapterRef(a *wgpu.Adapter) handle          { return (*oneRef)(unsafe.Pointer(a)).ref }
func bindingInstance(h handle) *wgpu.Instance {
	return (*wgpu.Instance)(unsafe.Pointer(&oneRef{h}))
}

// native is one device of the library. All methods are for the owner goroutine.
type native struct {
	c      *C.struct_gpu_dev
	device *wgpu.Device // the same device for the binding's constructors; owned by c
}

// slot is a completion flag in C memory: where the binding keeps a Go handle that the garbage collector frees.
type slot struct{ c *C.struct_gpu_slot }

// command is C's struct gpu_cmd. It holds no Go pointers, so passing a slice of it costs no scan.
type command = C.struct_gpu_cmd

const (
	opDispatch = C.GPU_DISPATCH
	opIndirect = C.GPU_INDIRECT
	opCopy     = C.GPU_COPY
	opClear    = C.GPU_CLEAR
	opStamp    = C.GPU_STAMP
	opResolve  = C.GPU_RESOLVE
)

// rawLimits is WGPULimits as the library reports it.
type rawLimits = C.struct_gpu_limits

func newInstance(backends uint32) *wgpu.Instance {
	C.gpu_quiet()
	h := C.gpu_instance(C.uint32_t(backends))
	if h == nil {
		return nil
	}
	return bindingInstance(h)
}

func hasLibrary(name string) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.gpu_has_library(s) != 0
}

func lastLog() string {
	var b [512]C.char
	C.gpu_last_log(&b[0], C.size_t(len(b)))
	return C.GoString(&b[0])
}

func catchAbort() { C.gpu_catch_abort() }

func adapterLimits(a *wgpu.Adapter) (l rawLimits) {
	C.gpu_adapter_limits(adapterRef(a), &l)
	return l
}

// openNative requests a device; the string says why there is none.
func openNative(a *wgpu.Adapter, l rawLimits, features []uint32) (native, string) {
	var msg [1024]C.char
	var f *C.uint32_t
	if len(features) > 0 {
		f = (*C.uint32_t)(unsafe.Pointer(&features[0]))
	}
	c := C.gpu_open(adapterRef(a), &l, f, C.size_t(len(features)), &msg[0], C.size_t(len(msg)))
	if c == nil {
		return native{}, C.GoString(&msg[0])
	}
	return native{c, (*wgpu.Device)(unsafe.Pointer(&oneRef{c.device}))}, ""
}

func (n native) close()           { C.gpu_close(n.c) }
func (n native) lost() bool       { return n.c.lost != 0 }
func (n native) lostText() string { return C.GoString(&n.c.lost_msg[0]) }
func (n native) errText() string  { return C.GoString(&n.c.msg[0]) }

// begin and end bracket calls made through the binding; end returns the error type, 0 for none.
func (n native) begin()   { C.gpu_begin(n.c) }
func (n native) end() int { return int(C.gpu_end(n.c)) }

func (n native) encodeBegin() bool { return C.gpu_encode_begin(n.c) != 0 }
func (n native) encode(cmds []command) {
	if len(cmds) > 0 {
		C.gpu_encode(n.c, &cmds[0], C.size_t(len(cmds)))
	}
}
func (n native) submit() int    { return int(C.gpu_submit(n.c)) }
func (n native) finish() handle { return C.gpu_finish(n.c) }
func (n native) submitAll(h []handle) int {
	return int(C.gpu_submit_all(n.c, &h[0], C.size_t(len(h))))
}
func discard(h handle)  { C.gpu_discard(h) }
func (n native) flush() { C.gpu_flush(n.c) }
func (n native) write(buf handle, off uint64, data []byte) int {
	return int(C.gpu_write(n.c, buf, C.uint64_t(off), unsafe.Pointer(&data[0]), C.size_t(len(data))))
}
func (n native) poll(tries int)  { C.gpu_poll(n.c, C.int(tries)) }
func (n native) whenDone(s slot) { C.gpu_when_done(n.c, s.c) }

func nativeSleep(ns uint32) { C.gpu_sleep(C.uint32_t(ns)) }

func newSlot() slot {
	return slot{(*C.struct_gpu_slot)(C.calloc(1, C.size_t(unsafe.Sizeof(C.struct_gpu_slot{}))))}
}
func (s slot) free()       { C.free(unsafe.Pointer(s.c)) }
func (s slot) status() int { return int(s.c.status) }

func (n native) startMap(buf handle, mode wgpu.MapMode, size uint64, s slot) int {
	return int(C.gpu_map(n.c, buf, C.uint32_t(mode), C.size_t(size), s.c))
}
func (n native) unmap(buf handle) int { return int(C.gpu_unmap(n.c, buf)) }
func mappedRange(buf handle, size uint64) []byte {
	return unsafe.Slice((*byte)(C.gpu_range(buf, C.size_t(size))), size)
}

// Conversions for the fields of command.
func address(h handle) C.uintptr_t { return C.uintptr_t(uintptr(h)) }
func cuint(v uint32) C.uint32_t    { return C.uint32_t(v) }
func culong(v uint64) C.uint64_t   { return C.uint64_t(v) }
