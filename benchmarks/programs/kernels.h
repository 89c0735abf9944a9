/* Kernels of a given time that fill the card, and the context that they run in. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stdint.h>

#include "calls.h"

struct kernel {
    CUfunction function;
    unsigned blocks;
    uint64_t turns; /* of its loop, where it works; 0 = it spins */
};

/* CLOCK_MONOTONIC in ns. */
uint64_t now(void);

/* The first card's primary context made current, and an empty `out`; false where CUDA does not start. */
bool kernels_start(void);

/* Spins until `us` of the card's own clock have passed: a time that goes on where another context interrupts it. */
bool kernel_spin(struct kernel *out, unsigned us);

/* Does what takes `us` when nothing interrupts it: as true beside others as alone. How many turns of its loop that is
 * says BENCH_TURNS for a ms of it, and is found out now where that is not set. */
bool kernel_work(struct kernel *out, unsigned us);

/* By the entry point that launches into the per-thread default stream, a cooperative one, or the ordinary one. */
enum way { ORDINARY, COOPERATIVE, PER_THREAD };
bool kernel_launch(const struct kernel *kernel, CUstream stream, enum way way);

#endif
