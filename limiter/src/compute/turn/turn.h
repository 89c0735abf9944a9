/* One turn of this process on a card, as arithmetic: which launches fit into it, when its work is expected to drain,
 * and what it is charged. Pure: the clock is an argument. All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_COMPUTE_TURN_TURN_H
#define VGPU_COMPUTE_TURN_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/turn/early_launches.h"
#include "compute/turn/turn_limits.h"

struct turn {
    uint64_t begun_at;
    struct turn_limits limits;
    uint64_t free_at;           /* when the card could begin with the first launch */
    uint64_t expected;          /* GPU time of all launches so far: the sum of their estimates */
    uint64_t charged;           /* part of `expected` that was charged while the turn went on */
    uint64_t drains_at;         /* when these launches, and what was on the card before, are expected to be done */
    uint64_t idle_ns;           /* how long the card is expected to have been idle since the first launch */
    unsigned launches;          /* so far */
    unsigned idle_gaps;         /* launches before which the card was expected to be idle */
    uint64_t expected_at_probe; /* `expected` when the pending probe was launched */
    bool is_probe_pending;      /* the card has not passed the probe: an event between two launches of the turn */
    bool is_doubtful;           /* contains a launch of which the estimate may be far too long */
    bool is_unknown;            /* contains a launch without an estimate, so no other launch is admitted */
    struct early_launches early;
    uint64_t waited_ns; /* how long the card was idle, because its stream waited for an event */
};

enum verdict {
    VERDICT_FITS,       /* launch now */
    VERDICT_TOO_DEEP,   /* too much work is in flight: wait, then ask again in the same turn */
    VERDICT_UNMEASURED, /* an estimate, or room for events, is missing: the turn has to be closed and measured */
    VERDICT_FULL,       /* budget, age or end time is reached: the turn has to be closed */
};

/* A turn that begins now. */
struct turn turn_open(uint64_t now, struct turn_limits limits);

/* Before the first launch: the card cannot begin with the turn's work before `free_at`. */
void turn_set_free_at(struct turn *turn, uint64_t free_at);

/* The card has begun with the first launch only now: the work drains no sooner than after the sum of the estimates. */
void turn_note_start(struct turn *turn, uint64_t now);

/* Whether a launch fits into the turn. `is_known`: it has an estimate, `estimate`. The first launch always fits; time
 * beyond the budget is repaid before the next turn. */
enum verdict turn_judge(const struct turn *turn, bool is_known, uint64_t estimate, uint64_t now);

/* The card was busy with the turn's work until `now`, or has been idle since less than the estimates say. */
void turn_note_busy(struct turn *turn, uint64_t now);

/* The card was found to have done the turn's work. The time since it was expected to has been idle. */
void turn_note_drained(struct turn *turn, uint64_t now);

/* The work drains at `least` at the earliest and at `most` at the latest, as far as the card has said. */
void turn_bound_drain(struct turn *turn, uint64_t least, uint64_t most);

/* When the card could begin with the turn's first launch, as turn_set_free_at said. */
uint64_t turn_free_at(const struct turn *turn);

/* How long the launches so far are expected to need from now on; 0 = they have drained. */
uint64_t turn_remaining(const struct turn *turn, uint64_t now);

/* Whether one more launch of `estimate` would drain more than a sixteenth of the budget after the turn's time, which
 * begins when the card is free for it and is as long as its budget. The turn is then over, although its budget is not
 * used: it began late, or the card was slow or idle meanwhile. The first launch is never late. */
bool turn_is_late(const struct turn *turn, uint64_t estimate, uint64_t now);

/* Until when the drain of the turn's work, which is waited for since `since`, is no surprise. Work that has not drained
 * by then may be waiting for a launch. */
uint64_t turn_drain_due_at(const struct turn *turn, uint64_t since);

/* The work has not drained: early launches are admitted on a loan of `loan` ns. */
void turn_lend(struct turn *turn, uint64_t loan, uint64_t now);

/* Admits every launch for the next 20 ms. */
void turn_extend(struct turn *turn, uint64_t now);

/* Adds an admitted launch; `is_known` and `estimate` as for turn_judge. */
void turn_add(struct turn *turn, bool is_known, uint64_t estimate, uint64_t now);

/* The turn goes on, for as long as its limits say. Returns what is to be charged until now: the estimates of the
 * launches that are expected to be done. What is in flight is charged later. */
uint64_t turn_renew(struct turn *turn, uint64_t now);

/* The estimates of all launches that turn_renew has not charged. */
uint64_t turn_uncharged(const struct turn *turn);

/* Adds launches that have passed without being added (joint_pass.h): `launches` with `used_ns` of estimates. */
void turn_add_passed(struct turn *turn, unsigned launches, uint64_t used_ns, uint64_t now);

/* Whether the launch that was just added is to be followed by a probe: the depth is limited, and no probe is pending.
 */
bool turn_is_to_be_probed(const struct turn *turn);

/* The launch that was just added is followed by a probe, which is now pending. */
void turn_note_probe(struct turn *turn);

/* Corrects `drains_at` by a query of the pending probe. If the card has passed it, only the launches after the probe
 * are left; if not, at least those are. */
void turn_apply_probe(struct turn *turn, bool is_passed, uint64_t now);

/* The card was idle for so long, because its stream waited for an event; said before the functions below. */
void turn_note_waited(struct turn *turn, uint64_t ns);

/* The measured time of a turn without these waits. */
uint64_t turn_worked(const struct turn *turn, uint64_t measured);

/* The GPU time that the turn is charged. `measured`: from its first launch to its last end event; 0 = could not be
 * measured, then the estimates are charged. `ends_recorded_at`: when end events were recorded as the turn was closed;
 * 0 = none was, because they follow their launches directly. Time in which the card was idle because nothing had been
 * launched, or because its stream waited, is not charged. The two may be the same time, so the longer one counts, and
 * where a stream waited, the estimates are charged at least. */
uint64_t turn_cost(const struct turn *turn, uint64_t measured, uint64_t ends_recorded_at);

/* Whether a time slice of another container explains why the turn took longer than its estimates: the arbiter limits
 * the turn, and its last kernel still ran when the next turn had begun. The card then runs the contexts by turns of
 * about 2 ms, and the measured time contains the other container's. */
bool turn_is_interrupted(const struct turn *turn, uint64_t measured);

/* The GPU time of the sampled launch. `measured`: between the events before and after it. `is_stream_idle`: its stream
 * had no work when it was launched, so `measured` includes the launch latency, which is subtracted. */
uint64_t turn_sampled(uint64_t measured, bool is_stream_idle);

/* Whether the measured time of the turn shows how long its launches take together: it has four or more, all with
 * estimates
 * that can be relied on. */
bool turn_is_informative(const struct turn *turn);

/* Whether that also holds if the measured time is longer than the estimates: the arbiter limits the turn, and the card
 * was rarely idle in it. */
bool turn_is_fully_informative(const struct turn *turn);

#endif
