#include "report.h"

#include <stdlib.h>

static double prefill_of(const struct run *r) { return r->prefill; }
static double decode_of(const struct run *r) { return r->decode; }

static double per_second(int n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// median is the middle one of a time of n runs, 1 or more; of two, the lesser.
static double median(const struct run *runs, int n, double (*of)(const struct run *)) {
	double *times = malloc((size_t)n * sizeof *times);
	if (!times)
		return 0;
	for (int i = 0; i < n; i++)
		times[i] = of(&runs[i]);
	qsort(times, (size_t)n, sizeof *times, ascending);
	double middle = times[(n - 1) / 2];
	free(times);
	return middle;
}

static void print_rate(FILE *out, int n, double seconds) {
	if (n == 0)
		fprintf(out, "  %15s", "-");
	else
		fprintf(out, "  %9.1f tok/s", per_second(n, seconds));
}

static void print_row(FILE *out, const char *name, const struct options *o, double prefill, double decode) {
	fprintf(out, "%-6s", name);
	print_rate(out, o->prompt, prefill);
	print_rate(out, o->decode, decode);
	fputc('\n', out);
}

void print_table(FILE *out, const struct report *r) {
	const struct options *o = r->options;
	fprintf(out, "%-6s  %15s  %15s\n", "RUN", "PREFILL", "DECODE");
	for (int i = 0; i <= o->runs; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		print_row(out, i ? name : "cold", o, r->runs[i].prefill, r->runs[i].decode);
	}
	if (o->runs > 0)
		print_row(out, "median", o, median(r->runs + 1, o->runs, prefill_of), median(r->runs + 1, o->runs, decode_of));
	fprintf(out, "\n%d tokens of prompt in chunks of %u, %d made after it; loaded in %.1f s; %s: %s (%s), ", o->prompt, r->ubatch, o->decode, r->load, r->model,
		r->device, r->backend);
	if (o->ngl > 0)
		fprintf(out, "%d layers on it, ", o->ngl);
	fprintf(out, "%s%d threads; llama.cpp %s\n", o->cpu_moe ? "experts on the CPU, " : "", o->threads, r->version);
	if (r->gpu_bytes)
		fprintf(out, "GPU %.2f GB\n", (double)r->gpu_bytes / 1e9);
}

// print_string writes a JSON string. Bytes of names that are no UTF-8 stay as they are.
static void print_string(FILE *out, const char *s) {
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static void print_field(FILE *out, const char *name, const char *value) {
	fprintf(out, "  \"%s\": ", name);
	print_string(out, value);
	fputs(",\n", out);
}

static void print_rates(FILE *out, const struct options *o, double prefill, double decode) {
	fprintf(out, "\"prefill_tokens_per_second\": %.6g, \"decode_tokens_per_second\": %.6g", per_second(o->prompt, prefill), per_second(o->decode, decode));
}

static void print_runs(FILE *out, const struct report *r) {
	const struct options *o = r->options;
	fputs("  \"cold\": {", out);
	print_rates(out, o, r->runs[0].prefill, r->runs[0].decode);
	fputs("},\n", out);
	if (o->runs > 0) {
		fputs("  \"warm\": {", out);
		print_rates(out, o, median(r->runs + 1, o->runs, prefill_of), median(r->runs + 1, o->runs, decode_of));
		fputs("},\n", out);
	}
	fputs("  \"runs\": [", out);
	for (int i = 0; i <= o->runs; i++) {
		fprintf(out, "%s\n    {\"prefill_seconds\": %.9g, \"decode_seconds\": %.9g, ", i ? "," : "", r->runs[i].prefill, r->runs[i].decode);
		print_rates(out, o, r->runs[i].prefill, r->runs[i].decode);
		fputc('}', out);
	}
	fputs("\n  ],\n", out);
}

void print_json(FILE *out, const struct report *r) {
	const struct options *o = r->options;
	fputs("{\n", out);
	print_field(out, "llama_version", r->version);
	print_field(out, "file", o->model);
	print_field(out, "model", r->model);
	fprintf(out, "  \"model_bytes\": %llu,\n", (unsigned long long)r->model_bytes);
	print_field(out, "device", r->device);
	print_field(out, "backend", r->backend);
	print_field(out, "device_details", r->device_details);
	print_field(out, "system", r->system);
	fprintf(out, "  \"ngl\": %d,\n  \"cpu_moe\": %s,\n  \"no_repack\": %s,\n  \"threads\": %d,\n  \"ctx\": %u,\n  \"kv\": \"%s\",\n", o->ngl, o->cpu_moe ? "true" : "false",
		o->no_repack ? "true" : "false", o->threads, r->ctx, o->kv_f32 ? "f32" : "f16");
	fprintf(out, "  \"prompt_tokens\": %d,\n  \"decode_tokens\": %d,\n  \"chunk\": %u,\n", o->prompt, o->decode, r->ubatch);
	fprintf(out, "  \"load_seconds\": %.6g,\n  \"gpu_bytes\": %llu,\n", r->load, (unsigned long long)r->gpu_bytes);
	print_runs(out, r);
	fputs("  \"tokens\": [", out);
	for (int i = 0; i < o->decode; i++)
		fprintf(out, "%s%d", i ? ", " : "", r->tokens[i]);
	fputs("]\n}\n", out);
}
