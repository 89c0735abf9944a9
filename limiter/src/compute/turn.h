/* One turn of a process on a card: how much it may launch, and what it is charged. Pure: the clock is an argument. */
#ifndef VGPU_COMPUTE_TURN_H
#define VGPU_COMPUTE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/turn_limits.h"

/* All times in ns. */
struct turn {
    uint64_t begun_at;
    struct turn_limits limits;
    uint64_t expected;   /* GPU time of what has been launched */
    uint64_t drained_at; /* when that is done, as far as is known */
    uint64_t idle_ns;    /* how long nothing ran since the first launch, as far as is known */
    unsigned launches;
    unsigned idle_gaps;         /* how often nothing ran before one of them */
    uint64_t expected_at_probe; /* GPU time of what had been launched when the probe was */
    bool is_probe_pending;      /* a probe is on its way: an event that says how far the card is */
    bool is_unknown;            /* it holds a launch that was never measured: nothing follows before it has been */
};

enum verdict {
    VERDICT_FITS,
    VERDICT_TOO_DEEP,   /* so much is in flight that it waits for a while */
    VERDICT_UNMEASURED, /* what was launched is to be measured first */
    VERDICT_FULL,       /* the turn ends */
};

struct turn turn_open(uint64_t now, struct turn_limits limits);

/* Before the first launch: the card is not free before then. And that the first launch has just begun: what was
 * launched takes its time from then on at least. */
void turn_set_free_at(struct turn *turn, uint64_t free_at);
void turn_note_start(struct turn *turn, uint64_t now);

/* Whether a launch fits; the first always does, whatever it takes: it is repaid. */
enum verdict turn_judge(const struct turn *turn, bool is_known, uint64_t expected, uint64_t now);

/* How long what was launched will take yet, as far as is known. */
uint64_t turn_remaining(const struct turn *turn, uint64_t now);

/* Lets everything in for the next 20 ms. */
void turn_extend(struct turn *turn, uint64_t now);

void turn_add(struct turn *turn, bool is_known, uint64_t expected, uint64_t now);

/* Whether a launch is to be followed by a probe; that it is; and what one says that has passed, or has not. */
bool turn_is_to_be_probed(const struct turn *turn);
void turn_probe(struct turn *turn);
void turn_apply_probe(struct turn *turn, bool is_passed, uint64_t now);

/* What the turn is charged: `measured` is the time from its first launch to its last one's end, or to `marked`, where
 * an end was marked only then (0 where not). The time is left out in which nothing ran because nothing was launched. A
 * `measured` of 0 says that it could not be measured. */
uint64_t turn_cost(const struct turn *turn, uint64_t measured, uint64_t ends_recorded_at);

/* How long a launch took, of which `measured` is the time from before it to its end; `is_prompt`: the card had nothing
 * else to do. */
uint64_t turn_sampled(uint64_t measured, bool is_stream_idle);

/* Whether what is measured of it says how long its launches take together. */
bool turn_is_informative(const struct turn *turn);

/* And whether that is so where it is longer than expected, too: between others' turns, and without pauses. */
bool turn_is_fully_informative(const struct turn *turn);

#endif
