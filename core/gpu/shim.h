// The part of wgpu-native's C interface that the Go binding gets wrong or pays too much for (see doc.go). The declarations
// follow webgpu.h and wgpu.h of the library that cogentcore/webgpu v0.23.0 links; handles are opaque pointers.
#ifndef SLUICE_GPU_SHIM_H
#define SLUICE_GPU_SHIM_H

#include <stddef.h>
#include <stdint.h>

// gpu_limits is WGPULimits, field for field.
struct gpu_limits {
	uint32_t texture1d, texture2d, texture3d, texture_layers;
	uint32_t bind_groups, bind_groups_plus_vertex, bindings_per_group;
	uint32_t dynamic_uniform, dynamic_storage, sampled_textures, samplers;
	uint32_t storage_buffers, storage_textures, uniform_buffers;
	uint64_t uniform_binding, storage_binding;
	uint32_t uniform_align, storage_align, vertex_buffers;
	uint64_t buffer_size;
	uint32_t vertex_attributes, vertex_stride, inter_components, inter_variables;
	uint32_t color_attachments, color_bytes;
	uint32_t group_storage, group_invocations, group_x, group_y, group_z, groups;
};

// gpu_dev is one device with everything its callbacks write. It is never freed: a callback may come late.
struct gpu_dev {
	void *device, *queue;
	void *encoder, *pass;     // while a submit is being encoded
	void *pipeline, *group;   // what the open pass has set
	int err;                  // first error since gpu_begin: WGPUErrorType, 0 for none
	volatile int lost;        // set by the device-lost callback
	volatile uint64_t calls; // map and work-done callbacks so far
	char msg[8192], lost_msg[1024];
};

// gpu_slot is a completion flag: 0 pending, 1 done, more is the callback's status + 1.
struct gpu_slot {
	volatile int status;
	struct gpu_dev *dev;
};

enum { GPU_DISPATCH, GPU_INDIRECT, GPU_COPY, GPU_CLEAR, GPU_STAMP, GPU_RESOLVE };

// gpu_cmd is one recorded command. Handles are integers so that Go can pass a slice of these without a pointer scan.
struct gpu_cmd {
	uint32_t op, x, y, z;
	uintptr_t a, b, c; // pipeline, group, arguments | source, target | query set, target
	uint64_t off, off2, n;
};

void *gpu_instance(uint32_t backends);
void gpu_quiet(void);
void gpu_last_log(char *to, size_t n);
void gpu_adapter_limits(void *adapter, struct gpu_limits *l);
struct gpu_dev *gpu_open(void *adapter, struct gpu_limits const *l, uint32_t const *features, size_t n, char *msg, size_t msg_n);
void gpu_close(struct gpu_dev *d);

void gpu_begin(struct gpu_dev *d);
int gpu_end(struct gpu_dev *d);
int gpu_encode_begin(struct gpu_dev *d);
void gpu_encode(struct gpu_dev *d, struct gpu_cmd const *c, size_t n);
int gpu_submit(struct gpu_dev *d);
void *gpu_finish(struct gpu_dev *d);
int gpu_submit_all(struct gpu_dev *d, void **commands, size_t n);
void gpu_discard(void *commands);
int gpu_write(struct gpu_dev *d, void *buffer, uint64_t off, void const *data, size_t n);
void gpu_flush(struct gpu_dev *d);
void gpu_when_done(struct gpu_dev *d, struct gpu_slot *s);
int gpu_map(struct gpu_dev *d, void *buffer, uint32_t mode, size_t n, struct gpu_slot *s);
void *gpu_range(void *buffer, size_t n);
int gpu_unmap(struct gpu_dev *d, void *buffer);
void gpu_poll(struct gpu_dev *d, int tries);
void gpu_sleep(uint32_t ns);

int gpu_has_library(char const *name);
void gpu_catch_abort(void);

#endif
