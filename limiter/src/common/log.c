#include "common/log.h"

#include <errno.h>
#include <poll.h>
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

static uint64_t left_out; /* atomically: warnings since the last one that was said */

/* "vgpu[7]: ", or "vgpu[7] (3 more left out): " where lines were left out; returns its length. */
static int begin(char *line, size_t size) {
    uint64_t more = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
    return more ? snprintf(line, size, "vgpu[%d] (%llu more left out): ", (int)getpid(), (unsigned long long)more)
                : snprintf(line, size, "vgpu[%d]: ", (int)getpid());
}

/* Neither waits for a reader nor meets the SIGPIPE of one that has gone. */
static bool is_heard(void) {
    struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && output.revents == POLLOUT;
}

static void put(const char *line, size_t length) {
    if (!is_heard() || write(STDERR_FILENO, line, length) < 0) return; /* nobody listens */
}

/* One write, so that lines of several processes do not mix. The program's errno is not ours to change. */
__attribute__((format(printf, 1, 0))) static void speak(const char *format, va_list arguments) {
    char line[512];
    int before = errno;
    int length = begin(line, sizeof line);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length] = '\n';
    put(line, (size_t)length + 1);
    errno = before;
}

void log_warn(const char *format, ...) {
    if (level() < WARN) return;
    if (!may_speak()) {
        __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
        return;
    }
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
