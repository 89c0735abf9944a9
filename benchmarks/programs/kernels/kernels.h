/* Kernels of a given duration that fill the card. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stdint.h>

#include "calls.h"

struct kernel {
    CUfunction function;
    unsigned blocks;
    uint64_t loops; /* iterations of a working kernel; 0 = the kernel spins */
};

/* CLOCK_MONOTONIC in ns. */
uint64_t now(void);

/* Makes the first card's primary context current; false when CUDA does not start. */
bool kernels_start(void);

/* Prints whether the program is ready, with the call that failed, and reads the time of now() at which to begin. False
 * where it is not ready, or no line came. */
bool kernels_await_begin(bool is_ready, uint64_t *from);

/* A kernel that spins until `us` of the card's clock have passed; the clock goes on while other contexts interrupt it.
 */
bool kernel_spin(struct kernel *out, unsigned us);

/* A kernel with a fixed amount of work that takes `us` when no other context interrupts it. BENCH_LOOPS is the number
 * of iterations per ms; when it is not set, it is measured now. */
bool kernel_work(struct kernel *out, unsigned us);

/* A kernel of one thread, as the delay kernel of an autotuner: it ends when the host has set a word. After `timeout_ms`
 * it gives up. */
bool kernel_await(CUfunction *out, unsigned timeout_ms);

/* Launches it: it waits until `word`, in memory from cuMemAllocHost, is at least `value`. When it gives up it sets the
 * word to value + 1. */
bool kernel_await_launch(CUfunction kernel, CUstream stream, volatile uint32_t *word, uint32_t value);

/* A kernel of one rank of a collective, as NCCL's: it spins until those of all `ranks` have begun, and then for `us`. On a
 * real card it has one thread. */
bool kernel_collective(struct kernel *out, unsigned ranks, unsigned us);

/* As kernel_work, and on a real card the kernel stamps its begin and its end with the card's clock. */
bool kernel_stamped(struct kernel *out, unsigned us);

/* Launches it. `begin` and `end` are 64 bits of the card's memory each, which must be all ones and 0. */
bool kernel_stamped_launch(const struct kernel *kernel, CUstream stream, CUdeviceptr begin, CUdeviceptr end);

/* By how many ns the card's clock is ahead of now(): by a kernel that tells it when the host has set a word. Needs a real
 * card. The shortest of some round trips is off by less than half of it. */
bool kernels_clock_difference(int64_t *ns);

/* Which collective a kernel belongs to, and of which rank it is. */
struct collective_round {
    uint64_t group; /* a number that the ranks of a job have in common: for the simulated driver */
    uint32_t value; /* number of the collective: 1, 2, ... */
    void *words;    /* memory of the host that all ranks share, a word of 32 bits for each, first 0: for a real card */
    uint32_t rank;
};
bool kernel_collective_launch(const struct kernel *kernel, CUstream stream, struct collective_round of);

/* The function to launch by: cuLaunchKernel, cuLaunchCooperativeKernel, or the form for the per-thread default stream.
 */
enum way { ORDINARY, COOPERATIVE, PER_THREAD };
bool kernel_launch(const struct kernel *kernel, CUstream stream, enum way way);

#endif
