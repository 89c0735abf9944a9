#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/nocancel.h"

enum level { OFF, WARN, DEBUG };

/* Rate limit of warnings: a program that retries a refused allocation in a loop must not fill the log. */
enum { LINES_PER_SECOND = 10 };

static enum level level(void) {
    const char *setting = secure_getenv("VGPU_LOG");
    if (setting && strcmp(setting, "off") == 0) return OFF;
    return setting && strcmp(setting, "debug") == 0 ? DEBUG : WARN;
}

/* Rate limiter without a lock. A thread that loses the race counts as over the limit. */
static bool is_within_rate(void) {
    static uint64_t state; /* atomic: the clock's second; in the low byte, the lines written in that second */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t seen = __atomic_load_n(&state, __ATOMIC_RELAXED);
    uint64_t next = seen >> 8 == (uint64_t)now.tv_sec ? seen + 1 : (uint64_t)now.tv_sec << 8 | 1;
    if ((next & 255) > LINES_PER_SECOND) return false;
    return __atomic_compare_exchange_n(&state, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static uint64_t suppressed; /* atomic: warnings over the rate limit since the last line that was written */

/* Writes "vgpu[<pid>]: ", or "vgpu[<pid>] (3 warnings suppressed): ", and returns the length. */
static int write_prefix(char *line, size_t size) {
    uint64_t count = __atomic_exchange_n(&suppressed, 0, __ATOMIC_RELAXED);
    return count
               ? snprintf(line, size, "vgpu[%d] (%llu warnings suppressed): ", (int)getpid(), (unsigned long long)count)
               : snprintf(line, size, "vgpu[%d]: ", (int)getpid());
}

/* The file that standard error was when the program started. */
static struct {
    bool is_open;
    dev_t device;
    ino_t inode;
} first_output;

__attribute__((constructor)) static void note_output(void) {
    struct stat status;
    int saved_errno = errno;
    first_output.is_open = fstat(STDERR_FILENO, &status) == 0;
    if (first_output.is_open) {
        first_output.device = status.st_dev;
        first_output.inode = status.st_ino;
    }
    errno = saved_errno;
}

/* A daemon closes its descriptors, and the next file that it opens, such as a database, has the number of standard
 * error. */
static bool is_first_output(void) {
    struct stat status;
    return first_output.is_open && fstat(STDERR_FILENO, &status) == 0 && status.st_dev == first_output.device &&
           status.st_ino == first_output.inode;
}

/* Standard error may be a full pipe, which would block, or one without a reader, which would raise SIGPIPE. */
static bool is_writable(void) {
    struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
    return nocancel_poll_once(&output, 1) == 1 && output.revents == POLLOUT;
}

static void write_if_possible(const char *line, size_t length) {
    if (!is_first_output() || !is_writable() || nocancel_write(STDERR_FILENO, line, length) < 0) return;
}

/* One write() per line, so that lines of several processes do not mix. */
__attribute__((format(printf, 1, 0))) static void write_line(const char *format, va_list arguments) {
    char line[512];
    int saved_errno = errno;
    int length = write_prefix(line, sizeof line);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length] = '\n';
    write_if_possible(line, (size_t)length + 1);
    errno = saved_errno;
}

void log_warn(const char *format, ...) {
    if (level() < WARN) return;
    if (!is_within_rate()) {
        __atomic_fetch_add(&suppressed, 1, __ATOMIC_RELAXED);
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

void log_debug(const char *format, ...) {
    if (level() < DEBUG) return;
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}
