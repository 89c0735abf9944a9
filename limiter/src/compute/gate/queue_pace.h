/* Opens the segments of a gate (segments.h) within its turn, so slowly that little work is open but not done: when the
 * arbiter asks the turn back, the next tenant waits for that much only. The card writes how far it is, so no estimate
 * has to be right. No function calls the driver or waits. The caller holds LOCK_GATE or owns the gate. */
#ifndef VGPU_COMPUTE_GATE_QUEUE_PACE_H
#define VGPU_COMPUTE_GATE_QUEUE_PACE_H

#include "compute/gate/gate_state.h"

/* Begins a turn within `limits` for the launches that are queued. The phase becomes OPEN_QUEUE. */
void queue_pace_begin(struct gate *gate, struct turn_limits limits);

/* Opens every segment that may be opened now. VERDICT_FITS: none is closed; VERDICT_TOO_DEEP: later; VERDICT_FULL: not
 * in this turn. */
enum verdict queue_pace_step(struct gate *gate, uint64_t now);

/* Opens all segments at once. */
void queue_pace_open_all(struct gate *gate);

/* Opens all segments at once, without a turn that they are charged to. */
void queue_pace_release_all(struct gate *gate);

/* The ns until the next queue_pace_step: until it may open a segment, or learn how far the card is. */
uint64_t queue_pace_due_in(const struct gate *gate, uint64_t now);

/* Whether a launch of `estimate` may run at once: the turn has room for it, and no launch before it is closed. */
bool queue_pace_may_run(struct gate *gate, uint64_t estimate, uint64_t now);

/* A launch of `estimate` runs in the turn. */
void queue_pace_note_run(struct gate *gate, uint64_t estimate, uint64_t now);

/* GPU time of a segment. */
uint64_t queue_pace_segment(const struct gate *gate);

/* The host waits for the turn's work, so the card counts as busy for longer than the estimates say. */
void queue_pace_note_awaited(struct gate *gate);

#endif
