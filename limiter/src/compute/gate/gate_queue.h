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

#include "compute/gate/gate_state.h"

/* A launch of `estimate` GPU time is admitted; 0 = it has no estimate. The caller holds LOCK_GATE. */
void gate_queue_note_launch(struct gate *gate, uint64_t estimate);

/* Whether launches are to be queued: they are short, only the arbiter limits the program, and the driver can do it. The
 * phase is OPENING, set by the caller; no segment is closed. May call the driver. */
bool gate_queue_is_worth_it(const struct gate *gate);

/* Begins to queue launches; returns the gate's next phase: OPEN if a turn is at hand. The phase is OPENING, set by the
 * caller, who holds LOCK_GATE, which is released meanwhile. */
enum phase gate_queue_begin(struct gate *gate);

/* Adds a launch to a segment, or to the turn; VERDICT_FITS: it has its `slot`. Otherwise there is no room. The caller
 * holds LOCK_GATE; the phase is QUEUING, or OPEN with a queue turn. */
enum verdict gate_queue_admit(struct gate *gate, const struct queued_launch *launch, uint64_t now,
                              struct launch_slot *slot);

/* Learns from the sample that slot->reads_sample announced, if the card has passed it. Takes LOCK_GATE. */
void gate_queue_read_sample(struct gate *gate);

/* Asks for the turn of what is queued now. The caller holds LOCK_GATE. */
void gate_queue_want_turn(struct gate *gate);

/* Charges a turn, without waiting for its work, and gives it back if `is_given_back`. The caller owns the gate.
 * `may_ask_driver`: false in the gate's thread. */
void gate_queue_end_turn(struct gate *gate, bool may_ask_driver, bool is_given_back);

/* A wait of the host for the card. */
struct host_wait {
    struct gate *gate; /* NULL: no launch needs turns */
    uint64_t since;
    bool ends_period; /* of the gate's host_periods, with launches that were queued */
};

/* The calling thread is about to wait for the card: the turn of what is queued is asked for, and a host-bound program's
 * turn is given back, because nothing is launched before its work has drained. Takes LOCK_GATE. Called before any
 * driver function that may block. */
struct host_wait gate_queue_begin_wait(void);

/* The wait is over: the card was busy until now. Takes LOCK_GATE. */
void gate_queue_end_wait(const struct host_wait *wait);

/* If launches are queued: opens them as gate_queue_flush does, and waits until their work should have drained, for 0.1
 * s at most. Takes LOCK_GATE. */
void gate_queue_drain(struct gate *gate);

/* Opens what is queued, before a context ends; waits for the turn for one second at most. The phase is not QUEUING
 * afterwards. The caller holds LOCK_GATE, which is released while it waits. */
void gate_queue_flush(struct gate *gate);

#endif
