#include "common/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/environment.h"
#include "common/system_calls.h"

enum level { OFF, WARN, DEBUG };

/* Rate limit of warnings: a program that retries a refused allocation in a loop must not fill the log. */
enum { LINES_PER_SECOND = 10 };

static enum level level(void) {
    const char *setting = environment_find("VGPU_LOG");
    if (setting && strcmp(setting, "off") == 0) return OFF;
    return setting && strcmp(setting, "debug") == 0 ? DEBUG : WARN;
}

/* Rate limiter without a lock. A thread that loses the race counts as over the limit. */
static bool is_within_rate(void) {
    static uint64_t state; /* atomic: the clock's second; in the low byte, the lines written in that second */
    uint64_t second = clock_now() / NS_PER_SECOND;
    uint64_t seen = __atomic_load_n(&state, __ATOMIC_RELAXED);
    uint64_t next = seen >> 8 == second ? seen + 1 : second << 8 | 1;
    if ((next & 255) > LINES_PER_SECOND) return false;
    return __atomic_compare_exchange_n(&state, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

enum { LINE_SIZE = 512 };

static uint64_t suppressed; /* atomic: warnings over the rate limit since the last line that was written */

/* Formats behind the first `length` characters, and returns the new length. Whatever vsnprintf is and returns, the text
 * ends within the line. */
__attribute__((format(printf, 3, 0))) static size_t append(char *line, size_t length, const char *format,
                                                           va_list arguments) {
    int more = vsnprintf(line + length, LINE_SIZE - length, format, arguments);
    if (more < 0) return length;
    return (size_t)more < LINE_SIZE - length ? length + (size_t)more : LINE_SIZE - 1;
}

__attribute__((format(printf, 2, 3))) static size_t begin(char *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t length = append(line, 0, format, arguments);
    va_end(arguments);
    return length;
}

/* Writes "vgpu[<pid>]: ", or "vgpu[<pid>] (3 warnings suppressed): ", and returns the length. */
static size_t write_prefix(char *line) {
    uint64_t count = __atomic_exchange_n(&suppressed, 0, __ATOMIC_RELAXED);
    return count ? begin(line, "vgpu[%d] (%llu warnings suppressed): ", system_process_id(), (unsigned long long)count)
                 : begin(line, "vgpu[%d]: ", system_process_id());
}

/* The file that standard error was when the program started. */
static struct {
    bool is_open;
    dev_t device;
    ino_t inode;
} first_output;

__attribute__((constructor)) static void note_output(void) {
    struct stat status = {0};
    first_output.is_open = system_fstat(STDERR_FILENO, &status) == 0;
    if (first_output.is_open) {
        first_output.device = status.st_dev;
        first_output.inode = status.st_ino;
    }
}

/* A daemon closes its descriptors, and the next file that it opens, such as a database, has the number of standard
 * error. */
static bool is_first_output(void) {
    struct stat status = {0};
    return first_output.is_open && system_fstat(STDERR_FILENO, &status) == 0 && status.st_dev == first_output.device &&
           status.st_ino == first_output.inode;
}

/* Standard error may be a full pipe, which would block, or one without a reader, which would raise SIGPIPE. */
static bool is_writable(void) {
    struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
    return system_poll_once(&output, 1) == 1 && output.revents == POLLOUT;
}

static void write_if_possible(const char *line, size_t length) {
    if (!is_first_output() || !is_writable() || system_write(STDERR_FILENO, line, length) < 0) return;
}

/* One write() per line, so that lines of several processes do not mix. */
__attribute__((format(printf, 1, 0))) static void write_line(const char *format, va_list arguments) {
    char line[LINE_SIZE] = {0};
    size_t length = append(line, write_prefix(line), format, arguments);
    if (length > LINE_SIZE - 2) length = LINE_SIZE - 2;
    line[length] = '\n';
    write_if_possible(line, length + 1);
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
