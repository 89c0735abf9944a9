/* The clock of the limiter, the same in all processes of a container. */
#ifndef VGPU_COMMON_CLOCK_H
#define VGPU_COMMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/arithmetic.h"

static inline uint64_t clock_read(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t clock_now(void) { return clock_read(CLOCK_MONOTONIC); }

/* The same, a few ms late and cheaper to read. */
static inline uint64_t clock_coarse(void) { return clock_read(CLOCK_MONOTONIC_COARSE); }

/* So much time as a timespec. */
static inline struct timespec clock_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND), .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

/* The processor's own clock, which costs less to read: no unit, and apart by little between processors. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/* So many of them as pass in some tenths of a second, by any processor's clock. */
static inline uint64_t clock_ticks_quarter_second(void) {
#if defined(__x86_64__)
    return 1ULL << 29;
#else
    uint64_t ticks_per_second;
    __asm__("mrs %0, cntfrq_el0" : "=r"(ticks_per_second));
    return ticks_per_second / 4;
#endif
}

/* Whether a moment has come, in ticks. So far ahead lies none: then the clock was set back, as by a machine's move. */
static inline bool clock_is_due(uint64_t then, uint64_t now) { return now >= then || then - now > 1ULL << 40; }

/* Whether it is `due` (in ticks, atomically): who hears that first puts it off by so many, and is the one to do it. */
static inline bool clock_take_due_at(uint64_t *due, uint64_t pause, /* NOLINT(readability-non-const-parameter) */
                                     uint64_t now) {
    uint64_t then = __atomic_load_n(due, __ATOMIC_RELAXED);
    return clock_is_due(then, now) &&
           __atomic_compare_exchange_n(due, &then, now + pause, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static inline bool clock_take_due(uint64_t *due, uint64_t pause) {
    return clock_take_due_at(due, pause, clock_ticks());
}

#endif
