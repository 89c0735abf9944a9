#include "arbiter/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

static const char usage[] = "usage: vgpu-arbiter [--config FILE] [--idle-exit SECONDS] [--parent PID] DIRECTORY";

enum { SECONDS_MAX = 86400 };

static bool read_seconds(const char *text, uint64_t *ns) {
    char *end;
    unsigned long seconds = strtoul(text, &end, 10);
    *ns = seconds * NS_PER_SECOND;
    return *end == 0 && seconds > 0 && seconds <= SECONDS_MAX;
}

static bool read_pid(const char *text, pid_t *pid) {
    char *end;
    long number = strtol(text, &end, 10);
    *pid = (pid_t)number;
    return *end == 0 && number > 0 && number == *pid;
}

static bool read_option(const char *name, const char *value, struct options *out) {
    if (strcmp(name, "--idle-exit") == 0) return read_seconds(value, &out->idle_exit_ns);
    if (strcmp(name, "--parent") == 0) return read_pid(value, &out->parent);
    if (strcmp(name, "--config") != 0) return false;
    out->config = value;
    return true;
}

static bool read_all(int count, char **arguments, struct options *out) {
    int index = 1;
    for (; index + 1 < count && strncmp(arguments[index], "--", 2) == 0; index += 2)
        if (!read_option(arguments[index], arguments[index + 1], out)) return false;
    if (index + 1 != count || arguments[index][0] == '-') return false;
    out->allocations = arguments[index];
    return true;
}

bool options_read(int count, char **arguments, struct options *out) {
    *out = (struct options){0};
    if (read_all(count, arguments, out)) return true;
    (void)fprintf(stderr, "%s\n", usage);
    return false;
}
