#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum level { OFF, WARN, DEBUG };

enum { LINES_A_SECOND = 10 };

static enum level level(void) {
    const char *wanted = secure_getenv("VGPU_LOG");
    if (wanted && strcmp(wanted, "off") == 0) return OFF;
    return wanted && strcmp(wanted, "debug") == 0 ? DEBUG : WARN;
}

/* Ten in each second of the clock. */
static bool may_speak(void) {
    static uint64_t state; /* the second, and in the low byte the lines in it */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t seen = __atomic_load_n(&state, __ATOMIC_RELAXED);
    uint64_t mine = seen >> 8 == (uint64_t)now.tv_sec ? seen + 1 : (uint64_t)now.tv_sec << 8 | 1;
    if ((mine & 255) > LINES_A_SECOND) return false;
    return __atomic_compare_exchange_n(&state, &seen, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* One write, so that lines of several processes do not mix. */
__attribute__((format(printf, 1, 0))) static void speak(const char *format, va_list arguments) {
    char line[512];
    int length = snprintf(line, sizeof line, "vgpu[%d]: ", (int)getpid());
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length] = '\n';
    if (write(STDERR_FILENO, line, (size_t)length + 1) < 0) return; /* nobody listens */
}

void log_warn(const char *format, ...) {
    if (level() < WARN || !may_speak()) return;
    va_list arguments;
    va_start(arguments, format);
    speak(format, arguments);
    va_end(arguments);
}

void log_debug(const char *format, ...) {
    if (level() < DEBUG) return;
    va_list arguments;
    va_start(arguments, format);
    speak(format, arguments);
    va_end(arguments);
}
