/* The pipe directory of an MPS daemon: where it is, and questions to the daemon, a line each. The daemon answers and
 * closes the connection. */
#ifndef SIMGPU_MPS_PIPE_PIPE_H
#define SIMGPU_MPS_PIPE_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#define PIPE_PATH_SIZE 108 /* of a socket's path */

/* Path of a file in the directory that CUDA_MPS_PIPE_DIRECTORY names, /tmp/nvidia-mps by default. False when it is too
 * long for a socket. */
bool pipe_path(char out[PIPE_PATH_SIZE], const char *name);

/* Asks the daemon and keeps its answer, cut to `size`. False when no daemon answers. */
bool pipe_ask(const char *line, char *answer, size_t size);

/* A socket that listens for questions; -1 when it cannot be made. */
int pipe_listen(void);

/* What a client asks: "client PERCENTAGE" with the percentage of its environment, 0 = it names none. The answer is
 * "server ID PERCENTAGE BYTES" with the server to join, or "closing" when the daemon ends. */
#define PIPE_CLIENT  "client %u\n"
#define PIPE_SERVER  "server "
#define PIPE_CLOSING "closing\n"

#endif
