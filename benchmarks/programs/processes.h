/* What the programs of several processes share. */
#ifndef BENCH_PROCESSES_H
#define BENCH_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A context on device 0, current. CUDA must not be started before a fork that uses it. */
bool start_cuda(void);

/* As fork, but the child dies with its parent. */
pid_t fork_child(void);

/* A line on standard output, at once; and one from standard input, false at its end. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
bool hear(void);

/* Of a clock that never goes back. */
uint64_t now_ns(void);

#endif
