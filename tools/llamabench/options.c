#define _GNU_SOURCE // sched_getaffinity
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: llamabench --model FILE [flags]\n"
	"\n"
	"Measures llama.cpp as `host bench` measures Sluice: a prompt of the same random tokens, and tokens made after it one by one and\n"
	"greedily. The first run is told apart, the others are given as their median.\n"
	"\n"
	"  --model FILE     GGUF file\n"
	"  --prompt N       tokens of the prompt (512)\n"
	"  --decode N       tokens to make after it (64)\n"
	"  --runs N         runs after the first (3)\n"
	"  --ngl N|all      layers on the GPU (all, where there is one); 0 is the CPU alone\n"
	"  --cpu-moe        keep the experts in host memory: the CPU computes them\n"
	"  --no-repack      keep weights on the CPU as the file has them (else laid out for its instructions)\n"
	"  --ctx N          tokens of context (as many as prompt and decode need)\n"
	"  --kv f16|f32     precision of the caches (f16)\n"
	"  --threads N      threads of the CPU (as many as it may use)\n"
	"  --ubatch N       most tokens of a prompt that are computed at once (512)\n"
	"  --json           print one JSON object\n"
	"  --verbose        llama.cpp's log on stderr\n"
	"\n"
	"GGML_VK_VISIBLE_DEVICES=0 picks a Vulkan device by its number, also one that is a CPU.\n";

_Noreturn static void refuse(const char *flag, const char *have, const char *want) {
	fprintf(stderr, "llamabench: --%s: have \"%s\", want %s\n", flag, have, want);
	exit(2);
}

// number reads a whole number of least or more.
static int number(const char *flag, const char *text, int least) {
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (end == text || *end || errno || n < least || n > INT_MAX / 4) {
		char want[64];
		snprintf(want, sizeof want, "a number, %d or more", least);
		refuse(flag, text, want);
	}
	return (int)n;
}

// usable_cpus is how many CPUs this process may use.
static int usable_cpus(void) {
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return CPU_COUNT(&set);
}

static void check(const struct options *o) {
	if (!o->model) {
		fputs("llamabench: have no --model, want a GGUF file; --help has the flags\n", stderr);
		exit(2);
	}
	if (o->ctx && o->decode > o->ctx - o->prompt) {
		fprintf(stderr, "llamabench: have %d tokens of prompt and %d to make, want at most the %d of --ctx\n", o->prompt, o->decode, o->ctx);
		exit(2);
	}
	if (o->cpu_moe && o->ngl == 0) {
		fputs("llamabench: --cpu-moe: have --ngl 0, which keeps everything on the CPU, want one of them\n", stderr);
		exit(2);
	}
}

struct options parse_options(int argc, char **argv) {
	enum { model = 1, prompt, decode, runs, ngl, ctx, kv, threads, ubatch, cpu_moe, no_repack, json, verbose, help };
	static const struct option known[] = {
		{"model", required_argument, NULL, model},
		{"prompt", required_argument, NULL, prompt},
		{"decode", required_argument, NULL, decode},
		{"runs", required_argument, NULL, runs},
		{"ngl", required_argument, NULL, ngl},
		{"ctx", required_argument, NULL, ctx},
		{"kv", required_argument, NULL, kv},
		{"threads", required_argument, NULL, threads},
		{"ubatch", required_argument, NULL, ubatch},
		{"cpu-moe", no_argument, NULL, cpu_moe},
		{"no-repack", no_argument, NULL, no_repack},
		{"json", no_argument, NULL, json},
		{"verbose", no_argument, NULL, verbose},
		{"help", no_argument, NULL, help},
		{0},
	};
	struct options o = {.prompt = 512, .decode = 64, .runs = 3, .ngl = all_layers, .threads = usable_cpus(), .ubatch = 512};
	for (int flag; (flag = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (flag) {
		case model: o.model = optarg; break;
		case prompt: o.prompt = number("prompt", optarg, 1); break;
		case decode: o.decode = number("decode", optarg, 0); break;
		case runs: o.runs = number("runs", optarg, 0); break;
		case ngl: o.ngl = strcmp(optarg, "all") ? number("ngl", optarg, 0) : all_layers; break;
		case ctx: o.ctx = number("ctx", optarg, 1); break;
		case kv:
			if (strcmp(optarg, "f16") && strcmp(optarg, "f32"))
				refuse("kv", optarg, "f16 or f32");
			o.kv_f32 = !strcmp(optarg, "f32");
			break;
		case threads: o.threads = number("threads", optarg, 1); break;
		case ubatch: o.ubatch = number("ubatch", optarg, 1); break;
		case cpu_moe: o.cpu_moe = true; break;
		case no_repack: o.no_repack = true; break;
		case json: o.json = true; break;
		case verbose: o.verbose = true; break;
		case help: fputs(usage, stdout); exit(0);
		default: exit(2); // getopt_long has said why
		}
	}
	if (optind < argc) {
		fprintf(stderr, "llamabench: have \"%s\", want flags only; --help has them\n", argv[optind]);
		exit(2);
	}
	check(&o);
	return o;
}
