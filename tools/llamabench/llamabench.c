// llamabench measures llama.cpp on a GGUF file as `host bench` measures Sluice, so that the two can stand in one table.
// scripts/peer builds it against the libraries of a published release.
#define _GNU_SOURCE // realpath, strdup
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ggml-backend.h"
#include "llama.h"

#include "log.h"
#include "options.h"
#include "prompt.h"
#include "report.h"

// The experts of all layers, as --cpu-moe of llama.cpp's own programs finds them.
static const char experts[] = "\\.ffn_(up|down|gate|gate_up)_(ch|)exps";

// bench is a model under measurement.
struct bench {
	const struct options *options;
	struct llama_model *model;
	struct llama_context *context;
	int vocab;       // tokens
	int32_t *prompt; // options->prompt tokens
	int32_t *made;   // options->decode tokens of the last run
};

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t n, size_t size) {
	void *p = calloc(n ? n : 1, size);
	if (!p)
		fail("out of memory: can't have %zu bytes", n * size);
	return p;
}

// own_folder is the folder of this program, where the backends are.
static const char *own_folder(void) {
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n < 0)
		fail("/proc/self/exe: %s", strerror(errno));
	path[n] = 0;
	return dirname(path);
}

static ggml_backend_dev_t find_gpu(void) {
	ggml_backend_dev_t gpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
	return gpu ? gpu : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU);
}

// check_gpu fails where the GPU is wanted, its backend is there, and no GPU is.
static void check_gpu(const char *folder, const struct options *o) {
	char path[PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/libggml-vulkan.so", folder);
	bool there = access(path, F_OK) == 0;
	if (there && !ggml_backend_reg_by_name("Vulkan") && !ggml_backend_load(path)) // said in silence before, and now with a reason
		fail("%s doesn't load: is there a Vulkan loader (libvulkan.so.1) and a driver? --ngl 0 does without", path);
	if (there)
		fail("%s finds no GPU: --ngl 0 does without, GGML_VK_VISIBLE_DEVICES=0 takes a CPU driver", path);
	if (o->ngl > 0 || o->cpu_moe)
		fail("have --ngl or --cpu-moe, and no GPU backend in %s, want the pack for vulkan", folder);
}

// load_backends loads what is beside the program, and returns the GPU to use; NULL is the CPU alone.
static ggml_backend_dev_t load_backends(const struct options *o) {
	const char *folder = own_folder();
	ggml_backend_load_all_from_path(folder);
	if (!ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU))
		fail("%s has no libggml-cpu-*.so that this CPU can run", folder);
	if (o->ngl == 0)
		return NULL;
	ggml_backend_dev_t gpu = find_gpu();
	if (!gpu)
		check_gpu(folder, o);
	return gpu;
}

static uint64_t free_bytes(ggml_backend_dev_t gpu) {
	size_t unused = 0, total = 0;
	if (gpu)
		ggml_backend_dev_memory(gpu, &unused, &total);
	return unused;
}

static void check_file(const char *path) {
	FILE *f = fopen(path, "rb");
	char magic[4] = {0};
	if (!f)
		fail("--model %s: %s", path, strerror(errno));
	errno = 0;
	size_t n = fread(magic, 1, sizeof magic, f);
	if (ferror(f))
		fail("--model %s: %s", path, strerror(errno));
	fclose(f);
	if (n < sizeof magic || memcmp(magic, "GGUF", sizeof magic))
		fail("--model %s: this is no GGUF file, whose first bytes are GGUF", path);
}

// load_model loads on one GPU, or none.
static struct llama_model *load_model(const struct options *o, ggml_backend_dev_t gpu) {
	ggml_backend_dev_t devices[] = {gpu, NULL};
	const struct llama_model_tensor_buft_override overrides[] = {{experts, ggml_backend_cpu_buffer_type()}, {NULL, NULL}};
	struct llama_model_params p = llama_model_default_params();
	p.devices = devices;
	p.n_gpu_layers = o->ngl;
	p.use_extra_bufts = !o->no_repack;
	if (o->cpu_moe)
		p.tensor_buft_overrides = overrides;
	struct llama_model *m = llama_model_load_from_file(o->model, p);
	if (!m)
		fail("--model %s: llama.cpp doesn't load it", o->model);
	return m;
}

static struct llama_context *make_context(const struct options *o, struct llama_model *m) {
	struct llama_context_params p = llama_context_default_params();
	p.n_ctx = (uint32_t)(o->ctx ? o->ctx : o->prompt + o->decode);
	p.n_batch = (uint32_t)o->prompt;
	p.n_ubatch = (uint32_t)o->ubatch;
	p.n_outputs_max = 1; // spares the memory for logits of the whole prompt
	p.n_threads = p.n_threads_batch = o->threads;
	p.type_k = p.type_v = o->kv_f32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
	struct llama_context *c = llama_init_from_model(m, p);
	if (!c)
		fail("--model %s: llama.cpp can't make a context of %u tokens: is memory too small? Fewer by --ctx, --prompt, --decode; --ubatch for less scratch",
			o->model, p.n_ctx);
	return c;
}

// argmax is the likeliest token.
static int32_t argmax(const float *logits, int n) {
	int32_t best = 0;
	for (int32_t i = 1; i < n; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

// feed feeds tokens and returns the likeliest one after them.
static int32_t feed(struct bench *b, int32_t *tokens, int n) {
	int code = llama_decode(b->context, llama_batch_get_one(tokens, n));
	if (code)
		fail("llama_decode of %d tokens: error %d", n, code);
	const float *logits = llama_get_logits_ith(b->context, -1);
	if (!logits)
		fail("llama.cpp has no logits after %d tokens", n);
	int32_t token = argmax(logits, b->vocab);
	if (!isfinite(logits[token]))
		fail("--model %s: the logits are no numbers", b->options->model);
	return token;
}

// measure is one prompt and what follows.
static struct run measure(struct bench *b) {
	struct run r;
	llama_memory_clear(llama_get_memory(b->context), true);
	double start = now();
	int32_t token = feed(b, b->prompt, b->options->prompt);
	double prefilled = now();
	for (int i = 0; i < b->options->decode; i++) {
		b->made[i] = token;
		token = feed(b, &token, 1);
	}
	r.prefill = prefilled - start;
	r.decode = now() - prefilled;
	return r;
}

static struct bench begin(const struct options *o, ggml_backend_dev_t gpu) {
	struct bench b = {.options = o, .model = load_model(o, gpu)};
	b.context = make_context(o, b.model);
	b.vocab = llama_vocab_n_tokens(llama_model_get_vocab(b.model));
	b.prompt = allocate((size_t)o->prompt, sizeof *b.prompt);
	b.made = allocate((size_t)o->decode, sizeof *b.made);
	random_tokens(b.prompt, o->prompt, (uint32_t)b.vocab);
	return b;
}

static void describe(struct report *r, const struct bench *b, ggml_backend_dev_t device) {
	r->version = llama_version();
	llama_model_desc(b->model, r->model, sizeof r->model);
	r->model_bytes = llama_model_size(b->model);
	r->device = ggml_backend_dev_description(device);
	r->backend = ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
	r->device_details = device_details();
	r->system = llama_print_system_info();
	r->ctx = llama_n_ctx(b->context);
	r->ubatch = llama_n_ubatch(b->context);
	r->tokens = b->made;
}

int main(int argc, char **argv) {
	const struct options o = parse_options(argc, argv);
	keep_log(o.verbose);
	check_file(o.model);
	ggml_backend_dev_t gpu = load_backends(&o);
	llama_backend_init();

	uint64_t before = free_bytes(gpu);
	double start = now();
	struct bench b = begin(&o, gpu);
	struct report r = {.options = &o, .load = now() - start, .runs = allocate((size_t)o.runs + 1, sizeof *r.runs)};
	for (int i = 0; i <= o.runs; i++)
		r.runs[i] = measure(&b);
	uint64_t after = free_bytes(gpu);
	r.gpu_bytes = before > after ? before - after : 0;
	describe(&r, &b, gpu ? gpu : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));

	(o.json ? print_json : print_table)(stdout, &r);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "llamabench: can't write the result: %s\n", strerror(errno));
		return 1;
	}
	free(r.runs);
	free(b.prompt);
	free(b.made);
	llama_free(b.context);
	llama_model_free(b.model);
	llama_backend_free();
	return 0;
}
