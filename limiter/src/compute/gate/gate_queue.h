/* Launches that are queued on the card ahead of their turn (ADR 35, 88). If launches waited in the host for each turn,
 * a program would do its host's work in series with the turns of everybody, and lose its lead over the card. So its
 * launches go to the card at once, in segments (segments.h): the streams of a segment wait for a word of memory
 * (queue_page.h) until the segment is opened. In a turn, segments are opened at the pace of the card (queue_pace.h).
 *
 * A program that keeps the card busy asks for its turn at once. A host-bound program launches more slowly than the card
 * works: its turn is asked for when the queue is worth it (host_periods.h), when the host waits for the card, or when
 * it launches nothing for a while, and given back when the host waits.
 *
 * A thread of the gate's own asks for the turn and opens the segments. The thread calls no driver function: another
 * thread may be inside one that waits for the card, and the driver may hold locks for it. So whatever a program does
 * while a segment is closed, it goes on after the time until its next turn: a call that blocks is a time without
 * launches. */
#ifndef VGPU_COMPUTE_GATE_GATE_QUEUE_H
#define VGPU_COMPUTE_GATE_GATE_QUEUE_H

#include "common/clock.h"
#include "compute/gate/gate_state.h"

/* Longest wait for the work of queued launches. */
#define GATE_QUEUE_DRAIN_MAX (100 * NS_PER_MS)

/* No function waits, takes a lock or asks the driver, but for what is said. The caller holds LOCK_GATE. */

/* A launch of `estimate` GPU time is admitted; 0 = it has no estimate. */
void gate_queue_note_launch(struct gate *gate, uint64_t estimate);

/* Whether launches are to be queued: they are short, only the arbiter limits the program, and the driver can do it. The
 * phase is OPENING; no segment is closed. May call the driver; the caller owns the gate, and does not hold the lock. */
bool gate_queue_is_worth_it(const struct gate *gate);

/* Begins to queue launches. */
void gate_queue_begin(struct gate *gate);

/* When the gate's thread asks for the turn of what is queued, CLOCK_MONOTONIC in ns; 0 = at once. */
uint64_t gate_queue_ask_at(const struct gate *gate);

/* Begins the turn that the gate's thread has asked for, and opens the first segments. */
void gate_queue_begin_turn(struct gate *gate, struct turn_limits limits);

/* Whether the turn may be given back as soon as nothing is launched. A program that keeps the card busy keeps its turn
 * until the arbiter asks it back, because its pauses are short. */
bool gate_queue_is_idle(const struct gate *gate);

/* When the gate's thread looks at an open turn again, after queue_pace_step has returned `verdict`; UINT64_MAX = when
 * something changes. */
uint64_t gate_queue_look_at(const struct gate *gate, enum verdict verdict, uint64_t now);

/* Whether a turn that is full is to be given back. It goes on if only its time has to be charged. */
bool gate_queue_is_turn_over(const struct gate *gate);

/* Adds a launch to a segment, or to the turn; VERDICT_FITS: it has its `slot`. Otherwise there is no room. Launches are
 * queued, or the turn is one of queued launches. */
enum verdict gate_queue_admit(struct gate *gate, const struct queued_launch *launch, uint64_t now,
                              struct launch_slot *slot);

/* Charges a turn, without waiting for its work, and gives it back if `is_given_back`; then, if `may_ask_driver`, the
 * ends of its launches are recorded; whether they were. The caller owns the gate, and does not hold the lock. */
bool gate_queue_end_turn(struct gate *gate, bool may_ask_driver, bool is_given_back);

/* A thread is about to wait for the card, at `since`; whether that ends a period of host_periods.h, with launches that
 * were queued. */
bool gate_queue_note_host_waits(struct gate *gate, uint64_t since);

/* That wait took `ns`. */
void gate_queue_note_host_waited(struct gate *gate, uint64_t ns, bool ends_period);

/* The card was busy with the open turn until `now`, and was waited for for `waited` ns. */
void gate_queue_note_busy(struct gate *gate, uint64_t waited, uint64_t now);

/* Tells the arbiter when the work of a turn that was given back has drained. The arbiter waits for that before it gives
 * the next turn to a best-effort tenant; and if the work took less time than announced, the card would stay idle until
 * the announced time. Asks the driver; the caller owns the gate, and does not hold the lock. */
void gate_queue_correct_drain(struct gate *gate);

/* How long to wait for the work of what was queued and is open. */
uint64_t gate_queue_time_to_drain(const struct gate *gate);

#endif
