// What of the shim differs by operating system.
#define _GNU_SOURCE
#include "shim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static char const stopped[] = "host: gpu: the graphics library stopped (see the message above)\n";

#ifdef _WIN32
#include <io.h>
#include <windows.h>

void gpu_sleep(uint32_t ns) { Sleep(ns < 1000000 ? 0 : ns / 1000000); }
int gpu_has_library(char const *name) { return LoadLibraryA(name) != 0; }

static void on_abort(int sig) {
	(void)sig;
	_write(2, stopped, sizeof stopped - 1);
	_exit(1);
}
void gpu_catch_abort(void) { signal(SIGABRT, on_abort); }

#else
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

void gpu_sleep(uint32_t ns) {
	struct timespec t = { 0, (long)ns };
	nanosleep(&t, 0);
}

// The handle is kept: the graphics library opens the same file next.
int gpu_has_library(char const *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL) != 0; }

static struct sigaction before;

static int from_abort(siginfo_t const *info) {
#ifdef SI_TKILL
	return info->si_code == SI_TKILL; // Linux: abort() uses tgkill
#else
	return info->si_pid == getpid();
#endif
}

// on_abort answers abort() (which signals its own process); a SIGABRT sent from outside stays the Go runtime's.
static void on_abort(int sig, siginfo_t *info, void *ctx) {
	if (info && !from_abort(info) && (before.sa_flags & SA_SIGINFO) && before.sa_sigaction) {
		before.sa_sigaction(sig, info, ctx);
		return;
	}
	if (write(2, stopped, sizeof stopped - 1) < 0) { /* nothing left to tell it to */ }
	_exit(1);
}

void gpu_catch_abort(void) {
	struct sigaction a, old;
	memset(&a, 0, sizeof a);
	a.sa_sigaction = on_abort;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigfillset(&a.sa_mask);
	if (sigaction(SIGABRT, &a, &old) == 0 && old.sa_sigaction != on_abort) before = old;
}
#endif
