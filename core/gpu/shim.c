#define _GNU_SOURCE
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct chain { void const *next; uint32_t stype; };
struct native_limits { uint32_t push_constants, non_sampler_bindings; };
struct limits_in { void const *next; struct gpu_limits limits; };
struct limits_extras { struct chain chain; struct native_limits limits; };
struct instance_extras { struct chain chain; uint32_t backends, flags, dx12, gles3; char const *dxil, *dxc; };
struct device_desc {
	void const *next;
	char const *label;
	size_t feature_count;
	uint32_t const *features;
	struct limits_in const *limits;
	struct { void const *next; char const *label; } queue;
	void (*lost)(int reason, char const *msg, void *ud);
	void *lost_ud;
	struct { void const *next; void (*fn)(int type, char const *msg, void *ud); void *ud; } uncaptured;
};

extern void *wgpuCreateInstance(void const *desc);
extern void wgpuSetLogLevel(uint32_t level);
extern void wgpuSetLogCallback(void (*cb)(uint32_t level, char const *msg, void *ud), void *ud);
extern uint32_t wgpuAdapterGetLimits(void *adapter, struct limits_in *l);
extern void wgpuAdapterRequestDevice(void *adapter, struct device_desc const *desc, void (*cb)(int status, void *device, char const *msg, void *ud), void *ud);
extern void *wgpuDeviceGetQueue(void *device);
extern void wgpuDeviceRelease(void *device);
extern void wgpuQueueRelease(void *queue);
extern void wgpuDevicePushErrorScope(void *device, int filter);
extern void wgpuDevicePopErrorScope(void *device, void (*cb)(int type, char const *msg, void *ud), void *ud);
extern _Bool wgpuDevicePoll(void *device, uint32_t wait, void const *index); // a Rust bool: one byte, not a WGPUBool
extern void *wgpuDeviceCreateCommandEncoder(void *device, void const *desc);
extern void *wgpuCommandEncoderBeginComputePass(void *enc, void const *desc);
extern void wgpuCommandEncoderCopyBufferToBuffer(void *enc, void *src, uint64_t so, void *dst, uint64_t dof, uint64_t n);
extern void wgpuCommandEncoderClearBuffer(void *enc, void *buf, uint64_t off, uint64_t n);
extern void wgpuCommandEncoderWriteTimestamp(void *enc, void *set, uint32_t i);
extern void wgpuCommandEncoderResolveQuerySet(void *enc, void *set, uint32_t first, uint32_t count, void *dst, uint64_t off);
extern void *wgpuCommandEncoderFinish(void *enc, void const *desc);
extern void wgpuCommandEncoderRelease(void *enc);
extern void wgpuCommandBufferRelease(void *cb);
extern void wgpuComputePassEncoderSetPipeline(void *pass, void *p);
extern void wgpuComputePassEncoderSetBindGroup(void *pass, uint32_t i, void *g, size_t n, uint32_t const *dyn);
extern void wgpuComputePassEncoderDispatchWorkgroups(void *pass, uint32_t x, uint32_t y, uint32_t z);
extern void wgpuComputePassEncoderDispatchWorkgroupsIndirect(void *pass, void *buf, uint64_t off);
extern void wgpuComputePassEncoderEnd(void *pass);
extern void wgpuComputePassEncoderRelease(void *pass);
extern uint64_t wgpuQueueSubmitForIndex(void *queue, size_t n, void *const *cbs);
extern void wgpuQueueWriteBuffer(void *queue, void *buf, uint64_t off, void const *data, size_t n);
extern void wgpuQueueOnSubmittedWorkDone(void *queue, void (*cb)(int status, void *ud), void *ud);
extern void wgpuBufferMapAsync(void *buf, uint32_t mode, size_t off, size_t n, void (*cb)(int status, void *ud), void *ud);
extern void *wgpuBufferGetMappedRange(void *buf, size_t off, size_t n);
extern void wgpuBufferUnmap(void *buf);

static void copy_text(char *to, size_t n, char const *from) {
	snprintf(to, n, "%s", from ? from : "");
}

// ---- instance, adapter, device ----

// gpu_instance zeroes the extras that the binding's CreateInstance leaves uninitialised.
void *gpu_instance(uint32_t backends) {
	struct instance_extras e;
	memset(&e, 0, sizeof e);
	e.chain.stype = 0x00030006; // WGPUSType_InstanceExtras
	e.backends = backends;
	struct { void const *next; } desc = { &e };
	return wgpuCreateInstance(&desc);
}

static char last_log[512];
static void on_log(uint32_t level, char const *msg, void *ud) {
	(void)level;
	(void)ud;
	copy_text(last_log, sizeof last_log, msg);
}

// gpu_quiet keeps the library's last error line instead of printing every one.
void gpu_quiet(void) {
	wgpuSetLogLevel(1); // WGPULogLevel_Error
	wgpuSetLogCallback(on_log, 0);
}

void gpu_last_log(char *to, size_t n) { copy_text(to, n, last_log); }

void gpu_adapter_limits(void *adapter, struct gpu_limits *l) {
	struct limits_in in;
	memset(&in, 0, sizeof in);
	wgpuAdapterGetLimits(adapter, &in);
	*l = in.limits;
}

static void on_error(int type, char const *msg, void *ud) {
	struct gpu_dev *d = ud;
	if (type == 0 || d->err != 0) return;
	d->err = type;
	copy_text(d->msg, sizeof d->msg, msg);
}

static void on_lost(int reason, char const *msg, void *ud) {
	struct gpu_dev *d = ud;
	(void)reason;
	copy_text(d->lost_msg, sizeof d->lost_msg, msg);
	d->lost = 1;
}

struct opened { void *device; char *msg; size_t n; };
static void on_device(int status, void *device, char const *msg, void *ud) {
	struct opened *o = ud;
	if (status == 0) o->device = device;
	else copy_text(o->msg, o->n, msg);
}

// gpu_open requests the device by hand: the binding cannot set an uncaptured-error callback (the default one aborts) and
// keeps the device-lost one on the Go heap.
struct gpu_dev *gpu_open(void *adapter, struct gpu_limits const *l, uint32_t const *features, size_t n, char *msg, size_t msg_n) {
	struct gpu_dev *d = calloc(1, sizeof *d);
	if (!d) return 0;
	struct limits_extras extras = { { 0, 0x00030002 }, { 0, 0xffffffffu } }; // no push constants; the other stays as it is
	struct limits_in limits = { &extras, *l };
	struct device_desc desc;
	memset(&desc, 0, sizeof desc);
	desc.feature_count = n;
	desc.features = features;
	desc.limits = &limits;
	desc.lost = on_lost;
	desc.lost_ud = d;
	desc.uncaptured.fn = on_error;
	desc.uncaptured.ud = d;
	struct opened o = { 0, msg, msg_n };
	wgpuAdapterRequestDevice(adapter, &desc, on_device, &o);
	if (!o.device) {
		free(d);
		return 0;
	}
	d->device = o.device;
	d->queue = wgpuDeviceGetQueue(d->device);
	return d;
}

void gpu_close(struct gpu_dev *d) {
	wgpuQueueRelease(d->queue);
	wgpuDeviceRelease(d->device);
}

// ---- errors ----

void gpu_begin(struct gpu_dev *d) {
	d->err = 0;
	wgpuDevicePushErrorScope(d->device, 1); // out of memory
	wgpuDevicePushErrorScope(d->device, 0); // validation
}

int gpu_end(struct gpu_dev *d) {
	wgpuDevicePopErrorScope(d->device, on_error, d);
	wgpuDevicePopErrorScope(d->device, on_error, d);
	return d->err;
}

// ---- commands ----

int gpu_encode_begin(struct gpu_dev *d) {
	gpu_begin(d);
	d->encoder = wgpuDeviceCreateCommandEncoder(d->device, 0);
	d->pass = d->pipeline = d->group = 0;
	return d->encoder != 0;
}

static void end_pass(struct gpu_dev *d) {
	if (!d->pass) return;
	wgpuComputePassEncoderEnd(d->pass);
	wgpuComputePassEncoderRelease(d->pass);
	d->pass = d->pipeline = d->group = 0;
}

static void set_pass(struct gpu_dev *d, struct gpu_cmd const *c) {
	void *p = (void *)c->a, *g = (void *)c->b;
	if (!d->pass) d->pass = wgpuCommandEncoderBeginComputePass(d->encoder, 0);
	if (p != d->pipeline) {
		wgpuComputePassEncoderSetPipeline(d->pass, p);
		d->pipeline = p;
		d->group = 0;
	}
	if (g != d->group) {
		wgpuComputePassEncoderSetBindGroup(d->pass, 0, g, 0, 0);
		d->group = g;
	}
}

// gpu_encode keeps one compute pass open across consecutive dispatches and leaves it only for what a pass cannot hold.
void gpu_encode(struct gpu_dev *d, struct gpu_cmd const *c, size_t n) {
	for (struct gpu_cmd const *end = c + n; c < end; c++) {
		switch (c->op) {
		case GPU_DISPATCH:
			set_pass(d, c);
			wgpuComputePassEncoderDispatchWorkgroups(d->pass, c->x, c->y, c->z);
			continue;
		case GPU_INDIRECT:
			set_pass(d, c);
			wgpuComputePassEncoderDispatchWorkgroupsIndirect(d->pass, (void *)c->c, c->off);
			continue;
		}
		end_pass(d);
		switch (c->op) {
		case GPU_COPY:
			wgpuCommandEncoderCopyBufferToBuffer(d->encoder, (void *)c->a, c->off, (void *)c->b, c->off2, c->n);
			break;
		case GPU_CLEAR:
			wgpuCommandEncoderClearBuffer(d->encoder, (void *)c->a, c->off, c->n);
			break;
		case GPU_STAMP:
			wgpuCommandEncoderWriteTimestamp(d->encoder, (void *)c->a, c->x);
			break;
		case GPU_RESOLVE:
			wgpuCommandEncoderResolveQuerySet(d->encoder, (void *)c->a, 0, c->x, (void *)c->b, 0);
			break;
		}
	}
}

// gpu_finish gives what is encoded as a command buffer, or 0 with an error: the library stops the process over an invalid one.
void *gpu_finish(struct gpu_dev *d) {
	end_pass(d);
	void *cb = wgpuCommandEncoderFinish(d->encoder, 0);
	wgpuCommandEncoderRelease(d->encoder);
	d->encoder = 0;
	if (!gpu_end(d)) return cb;
	wgpuCommandBufferRelease(cb);
	return 0;
}

// gpu_submit_all submits command buffers, in order and at once, and releases them.
int gpu_submit_all(struct gpu_dev *d, void **commands, size_t n) {
	gpu_begin(d);
	wgpuQueueSubmitForIndex(d->queue, n, commands);
	for (size_t i = 0; i < n; i++) wgpuCommandBufferRelease(commands[i]);
	return gpu_end(d);
}

void gpu_discard(void *commands) { wgpuCommandBufferRelease(commands); }

int gpu_submit(struct gpu_dev *d) {
	void *cb = gpu_finish(d);
	if (!cb) return d->err;
	wgpuQueueSubmitForIndex(d->queue, 1, &cb);
	wgpuCommandBufferRelease(cb);
	return 0;
}

// gpu_flush submits what the queue's own writes have gathered.
void gpu_flush(struct gpu_dev *d) { wgpuQueueSubmitForIndex(d->queue, 0, 0); }

int gpu_write(struct gpu_dev *d, void *buffer, uint64_t off, void const *data, size_t n) {
	gpu_begin(d);
	wgpuQueueWriteBuffer(d->queue, buffer, off, data, n);
	return gpu_end(d);
}

// ---- mapping and waiting ----

static void on_done(int status, void *ud) {
	struct gpu_slot *s = ud;
	s->status = status + 1;
	s->dev->calls++;
}

int gpu_map(struct gpu_dev *d, void *buffer, uint32_t mode, size_t n, struct gpu_slot *s) {
	s->status = 0;
	s->dev = d;
	gpu_begin(d);
	wgpuBufferMapAsync(buffer, mode, 0, n, on_done, s);
	return gpu_end(d);
}

// gpu_when_done sets s when all that was submitted so far is done.
void gpu_when_done(struct gpu_dev *d, struct gpu_slot *s) {
	s->status = 0;
	s->dev = d;
	wgpuQueueOnSubmittedWorkDone(d->queue, on_done, s);
}

void *gpu_range(void *buffer, size_t n) { return wgpuBufferGetMappedRange(buffer, 0, n); }

int gpu_unmap(struct gpu_dev *d, void *buffer) {
	gpu_begin(d);
	wgpuBufferUnmap(buffer);
	return gpu_end(d);
}

// gpu_poll polls until a callback comes or the queue is empty, at most tries times.
void gpu_poll(struct gpu_dev *d, int tries) {
	uint64_t before = d->calls;
	while (tries-- > 0 && d->calls == before && !wgpuDevicePoll(d->device, 0, 0)) {
	}
}
