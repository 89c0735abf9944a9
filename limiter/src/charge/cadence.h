/* How often something is looked at that seldom changes: soon again after a change, and less and less often while there
 * is none. Pure: times are in ticks (moment.h), and given. Any thread may call. */
#ifndef VGPU_CHARGE_CADENCE_H
#define VGPU_CHARGE_CADENCE_H

#include <stdbool.h>
#include <stdint.h>

/* The pause between two looks, and how much longer than the look it is at least. */
struct cadence_limits {
    uint64_t min_pause;
    uint64_t max_pause;
    uint64_t pause_per_duration;
};

/* Atomically. All 0: a look is due. */
struct cadence {
    uint64_t pause;
    uint64_t earliest_due; /* when the next look may be, where there is reason for one */
    uint64_t due;          /* and where there is none */
};

/* Whether it is time to look: who hears that is the one to do it, and says then how it went. */
bool cadence_take(struct cadence *cadence, struct cadence_limits limits, uint64_t now);

/* A look has ended; `has_changed` is whether it found anything, or could not be made. */
void cadence_record(struct cadence *cadence, struct cadence_limits limits, uint64_t started, uint64_t ended,
                    bool has_changed);

/* There is reason for a look, as soon as one may be. */
void cadence_hasten(struct cadence *cadence);

#endif
