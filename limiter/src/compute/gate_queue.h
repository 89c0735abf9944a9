/* Launches that are queued on the card ahead of their turn (ADR 35). If launches waited in the host for each turn, a
 * program would do its host's work in series with the turns of everybody, and lose its lead over the card. So its
 * launches go to the card at once, behind a wait for a word of memory (queue_page.h): a batch. When the turn is given,
 * the wait is opened, and later launches run directly.
 *
 * A program that keeps the card busy asks for its turn at once. A host-bound program launches more slowly than the card
 * works: its turn is asked for when the batch is worth it (host_periods.h), when the host waits for the card, or when
 * it launches nothing for a while, and given back when the host waits.
 *
 * A thread of the gate's own asks for the turn and opens the wait. The thread calls no driver function: another thread
 * may be inside one that waits for the card, and the driver may hold locks for it. So whatever a program does while a
 * wait is closed, it goes on after the time until its next turn: a call that blocks is a time without launches. */
#ifndef VGPU_COMPUTE_GATE_QUEUE_H
#define VGPU_COMPUTE_GATE_QUEUE_H

#include "compute/gate_state.h"

/* Whether launches are to be queued: only the arbiter limits the program, and the driver can do it. The caller owns the
 * gate; no wait is closed. */
bool gate_queue_is_worth_it(const struct gate *gate);

/* Begins a batch; returns the gate's next phase. The caller owns the gate and has no turn. */
enum phase gate_queue_begin(struct gate *gate);

/* Decides on one launch of known GPU time `estimate` into the current batch; VERDICT_FITS: it has its `slot`, and is
 * added to the turn. The caller holds LOCK_GATE. */
enum verdict gate_queue_admit(struct gate *gate, uint64_t estimate, CUcontext context, CUstream stream,
                              struct launch_slot *slot);

/* Asks for the turn of the batch now. The caller holds LOCK_GATE. */
void gate_queue_want_turn(struct gate *gate);

/* Ends a turn without waiting for its work, and gives it back. The caller owns the gate. `may_ask_driver`: false in the
 * gate's thread. */
void gate_queue_end_turn(struct gate *gate, bool may_ask_driver);

/* A wait of the host for the card. */
struct host_wait {
    struct gate *gate; /* NULL: no launch needs turns */
    uint64_t since;
    bool ends_period; /* of the gate's host_periods, with launches that were queued */
};

/* The calling thread is about to wait for the card: the turn of a batch is asked for, and a batch's turn is given back,
 * because nothing is launched before its work has drained. Takes LOCK_GATE. Called before any driver function that may
 * block. */
struct host_wait gate_queue_begin_wait(void);

/* The wait is over: the card was busy until now. Takes LOCK_GATE. */
void gate_queue_end_wait(const struct host_wait *wait);

/* If a batch is queued: opens its wait as gate_queue_flush does, and waits until its work should have drained, for 0.1
 * s at most. Takes LOCK_GATE. */
void gate_queue_drain(struct gate *gate);

/* Opens the wait of a batch that is queued, before a context ends; waits for the turn for one second at most. Takes
 * LOCK_GATE. */
void gate_queue_flush(struct gate *gate);

#endif
