// Package gpu is the host's only door to WebGPU: it opens a device, creates buffers, pipelines and bind groups, records and
// submits dispatches, and moves bytes up and down. It knows nothing of models, programs or pools; core/engine and core/store
// are built on it. Start at Open, then Device.NewBuffer, Device.NewPipeline, Commands and Device.Submit.
//
// The library below (wgpu-native of the 0.19 line, through cogentcore/webgpu) stops the whole process over some mistakes, so
// every call is checked here first: Submit refuses buffers that are mapped or released, Map refuses what is mapped already.
// What it reports instead comes back as an error that names the label. CatchAbort makes the rest end with one clear line.
//
// One owner goroutine per Device makes all calls to the library. That orders them, and keeps each error with the call it
// belongs to: error scopes are one stack per device. Methods may be called from any goroutine. A Commands list is plain
// memory and belongs to one goroutine at a time.
//
// Objects are created by the binding. Instance, device request, encoding, mapping and polling go through shim.c, because the
// binding leaves parts of descriptors uninitialised, keeps callback handles where the garbage collector frees them, and
// allocates for every call.
package gpu
