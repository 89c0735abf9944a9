/* Clocks: CLOCK_MONOTONIC in ns, which all processes of a node share, and the processor's counter in ticks, which is
 * cheaper to read and serves for deadlines inside one process. */
#ifndef VGPU_COMMON_CLOCK_H
#define VGPU_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/arithmetic.h"

/* Reads a clock in ns, without a function that a program can replace: by the kernel's vDSO where clock_use_vdso has
 * found it, else by a system call. */
uint64_t clock_read(clockid_t clock);

/* Finds the kernel's function for reading clocks in the vDSO, whose ELF image lies at `image` (AT_SYSINFO_EHDR of the
 * auxiliary vector; 0: there is none). Called once, by the first code that runs; earlier reads take a system call. */
void clock_use_vdso(unsigned long image);

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t clock_now(void) { return clock_read(CLOCK_MONOTONIC); }

/* CLOCK_MONOTONIC_COARSE in ns: up to a few ms behind clock_now, and cheaper to read. */
static inline uint64_t clock_coarse(void) { return clock_read(CLOCK_MONOTONIC_COARSE); }

/* The processor's counter (TSC, or the generic timer of arm64). The length of a tick depends on the machine, and
 * counters of different processors may differ slightly. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/* About a quarter of a second in ticks: on x86 a constant, which is 0.13 s at 4 GHz and 0.27 s at 2 GHz. */
static inline uint64_t clock_ticks_quarter_second(void) {
#if defined(__x86_64__)
    return 1ULL << 29;
#else
    uint64_t ticks_per_second;
    __asm__("mrs %0, cntfrq_el0" : "=r"(ticks_per_second));
    return ticks_per_second / 4;
#endif
}

/* Whether the deadline `due` has passed at `now`, both in ticks. A deadline more than 2^40 ticks ahead counts as
 * passed: the counter must have been set back, as by the live migration of a virtual machine. */
static inline bool clock_is_due(uint64_t due, uint64_t now) { return now >= due || due - now > 1ULL << 40; }

/* Claims a periodic task: where the deadline `*due` (atomic, in ticks) has passed, moves it to `now + pause` and
 * returns true to exactly one of the racing callers. */
static inline bool clock_take_due_at(uint64_t *due, uint64_t pause, /* NOLINT(readability-non-const-parameter) */
                                     uint64_t now) {
    uint64_t seen = __atomic_load_n(due, __ATOMIC_RELAXED);
    return clock_is_due(seen, now) &&
           __atomic_compare_exchange_n(due, &seen, now + pause, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* clock_take_due_at with the present tick count as `now`. */
static inline bool clock_take_due(uint64_t *due, uint64_t pause) {
    return clock_take_due_at(due, pause, clock_ticks());
}

#endif
