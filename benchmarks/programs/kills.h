/* What the workers of kills.c share with the process that kills them. */
#ifndef BENCH_KILLS_H
#define BENCH_KILLS_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_WORKERS = 64, PAUSE_US = 1000 };

enum order { NONE, WORK, HOLD, GIVE };

struct place {
    bool is_working;   /* by its worker, atomically; cleared by the parent when it kills it */
    enum order obeyed; /* by its worker, atomically; NONE again by the parent */
    uint64_t held;
    uint64_t longest_ns;
    uint64_t longest_outside_ns; /* the driver's own functions */
};

extern struct board {
    enum order order; /* by the parent, atomically */
    struct place places[MOST_WORKERS];
    uint64_t in_need; /* atomically, as the others: starting workers that were refused a context */
    uint64_t taken;
    uint64_t refused;
    uint64_t wrong;
} *board;

void add(uint64_t *figure, uint64_t more);

void keep_longest(uint64_t *longest, uint64_t took);

/* A worker's life: does as it is ordered, and never returns. */
int serve(struct place *place, unsigned seed);

#endif
