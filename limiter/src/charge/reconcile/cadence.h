/* A polling interval with exponential back-off: short after a poll that found a change, doubled after each poll that
 * found none. Pure: times are arguments, in ticks (common/clock.h). Needs no lock; any thread may call. */
#ifndef VGPU_CHARGE_RECONCILE_CADENCE_H
#define VGPU_CHARGE_RECONCILE_CADENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Bounds of the pause between the end of a poll and the next poll. */
struct cadence_limits {
    uint64_t min_pause;          /* ticks */
    uint64_t max_pause;          /* ticks; applies to the back-off, not to `pause_per_duration` */
    uint64_t pause_per_duration; /* the pause is at least this many times as long as the poll before it */
};

/* Relaxed atomic fields, written by any thread, in ticks. All 0: a poll is due. */
struct cadence {
    uint64_t pause;        /* current back-off */
    uint64_t earliest_due; /* when the next poll may be made after `cadence_hasten` */
    uint64_t due;          /* when the next poll is made without a reason to hasten */
};

/* Whether a poll is due at `now`. Only one of several threads gets true; it polls, then calls `cadence_record`. */
bool cadence_take(struct cadence *cadence, struct cadence_limits limits, uint64_t now);

/* Sets the next poll's time after a poll from `started` to `ended`. `has_changed`: the poll found a change, or failed,
 * so the back-off starts again. */
void cadence_record(struct cadence *cadence, struct cadence_limits limits, uint64_t started, uint64_t ended,
                    bool has_changed);

/* Resets the back-off and makes the next poll due at the earliest time that the limits allow. */
void cadence_hasten(struct cadence *cadence);

#endif
