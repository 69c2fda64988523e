// llama.cpp's log, of which only what matters is shown.
#pragma once

#include <stdbool.h>

// keep_log takes llama.cpp's log from now on. With verbose all of it goes to stderr.
void keep_log(bool verbose);

// device_details is what a GPU backend said of its first device, "" for nothing.
const char *device_details(void);

// fail ends the program with 1, a message like printf's, and the newest warnings and errors of the log.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
