/* The daemon's server: one process, started when it is needed. */
#ifndef SIMGPU_MPS_CONTROL_SERVER_PROCESS_H
#define SIMGPU_MPS_CONTROL_SERVER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct server_process {
    pid_t pid;   /* 0 = there is none */
    uint64_t id; /* in the ledger */
};

/* Starts the server unless it runs. Its `pid` stays 0 when it cannot be started. */
void server_process_start(struct server_process *server);
/* Notices that the server has ended. */
void server_process_look(struct server_process *server);
/* Kills the server. */
void server_process_end(struct server_process *server);

#endif
