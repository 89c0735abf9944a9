/* The command line. */
#ifndef VGPU_ARBITER_OPTIONS_H
#define VGPU_ARBITER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct options {
    const char *allocations; /* the directory of the containers' directories */
    const char *config;      /* NULL: none */
    uint64_t idle_exit_ns;   /* without containers for so long it ends; 0 = never */
    pid_t parent;            /* it ends with that process, which started it; 0 = it does not */
};

/* False where the arguments cannot be read, or are a wish for help: that is said then. */
bool options_read(int count, char **arguments, struct options *out);

#endif
