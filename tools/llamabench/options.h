// Options of the command line.
#pragma once

#include <stdbool.h>

// all_layers is --ngl's default. llama.cpp takes anything below 0 as all.
enum { all_layers = -1 };

struct options {
	const char *model; // path of the GGUF file
	int prompt;        // tokens of the prompt, 1 or more
	int decode;        // tokens to make after it, 0 or more
	int runs;          // runs after the first, 0 or more
	int ngl;           // layers on the GPU: all_layers, or how many; 0 is the CPU alone
	int ctx;           // tokens of context; 0 for as many as prompt and decode need
	int threads;       // of the CPU, 1 or more
	int ubatch;        // most tokens computed at once, 1 or more
	bool kv_f32;       // caches in f32, else in f16
	bool cpu_moe;      // experts stay in host memory, and the CPU computes them
	bool no_repack;    // weights on the CPU stay as the file has them
	bool json;
	bool verbose; // llama.cpp's log goes to stderr
};

// parse_options reads the command line. It ends the program with 2 and a message where that makes no sense, and with 0 after --help.
struct options parse_options(int argc, char **argv);
