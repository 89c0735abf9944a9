/* The command line of vgpu-arbiter. */
#ifndef VGPU_ARBITER_OPTIONS_H
#define VGPU_ARBITER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct options {
    const char *allocations; /* DIRECTORY: contains one directory for each container */
    const char *config;      /* --config FILE: watermarks (watermark_config.h); NULL = none */
    uint64_t idle_exit_ns;   /* --idle-exit SECONDS: end after this time without containers; 0 = never */
    pid_t parent;            /* --parent PID: end when this process, the one that started the arbiter, ends; 0 = none */
};

/* False, after a usage line on standard error, if the arguments are not valid or ask for help. */
bool options_read(int count, char **arguments, struct options *out);

#endif
