/* Memory that the workers of kills.c share with the process that kills them. */
#ifndef BENCH_KILLS_H
#define BENCH_KILLS_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_WORKERS = 64, PAUSE_US = 1000 };

enum order { NONE, WORK, HOLD, GIVE };

/* One worker. */
struct slot {
    bool is_working;   /* atomic; set by the worker, cleared by the parent at a kill */
    enum order obeyed; /* atomic; set by the worker, reset to NONE by the parent */
    uint64_t held;
    uint64_t longest_ns;
    uint64_t longest_outside_ns; /* without the time in the driver's own functions */
};

extern struct board {
    enum order order; /* atomic; set by the parent */
    struct slot slots[MOST_WORKERS];
    bool is_member;   /* of a group in space; set before the workers start */
    uint64_t in_need; /* atomic, as all below: starting workers whose context was refused */
    uint64_t taken;
    uint64_t refused;
    uint64_t wrong;
} *board;

void add(uint64_t *figure, uint64_t more);

void keep_longest(uint64_t *longest, uint64_t took);

/* Runs a worker, which obeys orders and never returns. */
int serve(struct slot *slot, unsigned seed);

#endif
