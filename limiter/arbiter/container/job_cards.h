/* A job: the linked cards of a container, which have their turns at the same moment (job/co_schedule.h), as the arbiter
 * knows it; and which of the container's cards these are. What is done on them: job_turns.h. */
#ifndef VGPU_ARBITER_CONTAINER_JOB_CARDS_H
#define VGPU_ARBITER_CONTAINER_JOB_CARDS_H

#include "arbiter/container/container.h"
#include "arbiter/job/co_schedule.h"

struct schedule;

struct job {
    struct container *container;
    struct tenancy *cards[LIMITS_CARDS]; /* on which it has its turns at the same moment */
    uint64_t card_bits;                  /* these cards, one bit for each board */
    uint64_t budget, ends_by;            /* of its last turn; when that was used */
    uint64_t called_at;                  /* before that turn */
    uint64_t asked_back_at;              /* it was asked back last */
    uint64_t handover_ns;                /* the average time from the call to the turn */
    unsigned count;                      /* of `cards`; 0 = it has its turns apart */
    uint32_t rows;                       /* of the container's region, one bit for each linked card */
    uint32_t number;                     /* of its last turn; never 0 */
    enum co_state state;                 /* what was carried out of its plan */
    bool is_contested;                   /* another tenant waits for one of its cards */
};

/* Finds out which cards the job has turns on now: those that it shares with others; with one such card, it has its
 * turns apart. Whether that has changed: then the job is IDLE, without a turn of its. */
bool job_cards_update(struct job *job, uint64_t now);

/* The job's cards have turns by themselves again. */
void job_cards_part(struct job *job);

/* After an event: the schedules of the job's cards run in the next card_boards_run. */
void job_cards_touch(const struct job *job);

/* The schedule of a card, and the job's tenant there. */
struct schedule *job_cards_schedule(const struct job *job, unsigned card);
int job_cards_tenant(const struct job *job, unsigned card);

#endif
