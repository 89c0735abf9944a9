/* The commands that administrators give the daemon, and what clients ask it. */
#ifndef SIMGPU_MPS_CONTROL_COMMANDS_H
#define SIMGPU_MPS_CONTROL_COMMANDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mps/control/server_process.h"

struct daemon_state {
    struct server_process server;
    unsigned percentage; /* of the multiprocessors, of each later client that names less or none */
    uint64_t bytes;      /* of memory on the card, of each later client; 0 = no limit */
    uint64_t ends_at; /* CLOCK_MONOTONIC ns when it ends at the latest; 0 = it was not told to, UINT64_MAX = any time */
};

/* Carries out a line of this user's and writes the answer, which may be empty. */
void command_run(struct daemon_state *daemon, uid_t user, const char *line, char *answer, size_t size);

#endif
