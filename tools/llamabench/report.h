// What was measured, as a table or as JSON.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "options.h"

// A run: times are in seconds.
struct run {
	double prefill;
	double decode;
};

struct report {
	const struct options *options;
	const char *version; // llama.cpp's
	char model[128];     // what llama.cpp calls it
	uint64_t model_bytes;
	const char *device; // what computes: the GPU, or the CPU
	const char *backend;
	const char *device_details; // what the backend says of it, "" for nothing
	const char *system;         // what the CPU can do
	uint64_t gpu_bytes;         // that the GPU lost of its free memory; 0 is unknown
	unsigned ctx, ubatch;       // as llama.cpp made them
	double load;                // seconds
	struct run *runs;           // the first one first, 1 + options->runs
	const int32_t *tokens;      // that the last run made, options->decode
};

// print_table writes the runs as `host bench` does.
void print_table(FILE *out, const struct report *r);

// print_json writes one object. Its fields that `host bench --json` has, too, mean the same.
void print_json(FILE *out, const struct report *r);
