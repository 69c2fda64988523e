#define _GNU_SOURCE // setenv
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llama.h"

static bool everything;
static char complaints[4096]; // the newest warnings and errors
static char details[512];

// append adds text to the complaints, and drops the oldest half where they are full.
static void append(const char *text) {
	size_t have = strlen(complaints), more = strlen(text), room = sizeof complaints - 1;
	if (more > room / 2)
		more = room / 2;
	if (have + more > room) {
		memmove(complaints, complaints + have - room / 2, room / 2);
		have = room / 2;
	}
	memcpy(complaints + have, text, more);
	complaints[have + more] = 0;
}

static void take(enum ggml_log_level level, const char *text, void *data) {
	static enum ggml_log_level last;
	(void)data;
	if (level == GGML_LOG_LEVEL_CONT)
		level = last;
	last = level;
	if (everything)
		fputs(text, stderr);
	if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR)
		append(text);
	const char *first = strstr(text, "ggml_vulkan: 0 = ");
	if (first && !*details)
		snprintf(details, sizeof details, "%.*s", (int)strcspn(first, "\n"), first);
}

// show_complaints writes what the log has of warnings and errors, unless it was shown.
static void show_complaints(void) {
	if (*complaints && !everything)
		fprintf(stderr, "llama.cpp's last warnings and errors:\n%s", complaints);
}

// stop ends the program where a check of llama.cpp's own fails, on any of its threads.
static void stop(const char *message) {
	fprintf(stderr, "llamabench: llama.cpp stopped itself: %s\n", message);
	show_complaints();
	_exit(1);
}

void keep_log(bool verbose) {
	everything = verbose;
	setenv("GGML_NO_BACKTRACE", "1", 0); // it would start a debugger
	ggml_set_abort_callback(stop);
	llama_log_set(take, NULL); // ggml's, too
}

const char *device_details(void) { return details; }

void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	fputs("llamabench: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	show_complaints();
	exit(1);
}
