/* Which jobs have their turns. A job is the linked cards of a container, or the cards of the containers of a gang: its
 * ranks wait for each other, so it has its turns on all of them at the same moment, or on none (co-scheduling,
 * Ousterhout's matrix; ADR 179, ADR 183).
 *
 *     IDLE -> CALLED    its cards are to be kept free for it: it waits, and each card would give it the next turn
 *     CALLED -> RUNS    no card has a turn any more, so it begins on all of them
 *     RUNS -> ENDS      it is asked back on all cards: one of them wants it back, or another job was called
 *     ENDS -> IDLE      it has no turn any more; each card has had its turn's end, or its deadline
 *
 * Two jobs that are CALLED have no card in common. A job that is called waits for turns only, which end by themselves
 * within a bound, and none of these waits for a card: so no job holds a card while it waits for another one, whatever
 * sets of cards there are. Jobs without a common card run at the same moment.
 *
 * Pure: no clock, no card. Times are in ns, CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_JOB_CO_SCHEDULE_H
#define VGPU_ARBITER_JOB_CO_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum co_state { CO_IDLE, CO_CALLED, CO_RUNS, CO_ENDS };

/* What the cards of a job say of it. */
struct co_view {
    uint64_t cards;       /* one bit for each */
    uint64_t wants_since; /* 0: it waits on no card */
    uint32_t class;       /* the last one of its classes (tenant/ranking.h): less goes first */
    uint32_t priority;    /* more goes first */
    bool is_first;        /* each card would give it the next turn */
    bool is_due;          /* likewise, at once */
    bool is_behind_job;   /* a card has the turn of another job, whose time is not used */
    bool is_free;         /* no card has a turn */
    bool holds;           /* a card has a turn of its */
    bool is_wanted_back;  /* a card wants its turn back, or all of them are idle */
};

struct co_job {
    struct co_view view; /* set before each step */
    enum co_state state;
    bool is_considered; /* within a step */
};

/* One step of all jobs. Whether a state has changed. */
bool co_schedule_step(struct co_job *jobs, unsigned count, uint64_t now);

/* Whether a job has waited for 300 ms or more, and therefore goes before jobs of earlier classes. */
bool co_schedule_is_starved(const struct co_view *view, uint64_t now);

#endif
