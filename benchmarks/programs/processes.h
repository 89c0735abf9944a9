/* Functions of programs with several processes. */
#ifndef BENCH_PROCESSES_H
#define BENCH_PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>

#include "now.h"

/* Makes the primary context of device 0 current; false when CUDA does not start. Not before a fork whose child uses
 * CUDA.
 */
bool start_cuda(void);

/* fork; the child is killed when its parent dies. */
pid_t fork_child(void);

/* Prints a line and flushes. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
/* Waits for a line; false at the end of standard input. */
bool hear(void);

#endif
