/* The turn that the node's arbiter gave this process on a card. All times are in ns; points in time are
 * CLOCK_MONOTONIC. The caller owns the gate (gate_machine.h). Functions that send a message take LOCK_ARBITER_LINK. */
#ifndef VGPU_COMPUTE_LINK_ARBITER_TURN_H
#define VGPU_COMPUTE_LINK_ARBITER_TURN_H

#include "common/arithmetic.h"
#include "compute/link/arbiter_link.h"

/* How long after the end of a job's turn launches go that its other cards wait for: as long as the arbiter waits for
 * the last of these. */
#define ARBITER_TURN_JOB_END_MAX (35 * NS_PER_MS)

struct arbiter_turn {
    uint32_t number;        /* of the turn that is held; 0 = none */
    uint64_t budget_left;   /* GPU time; UINT64_MAX = the turn has no budget */
    uint32_t last_returned; /* number of the last turn that was given back; 0 = none */
    uint64_t drains_at;     /* when that turn's work drains, as the arbiter was told */
    uint64_t returned_at;   /* when that turn was given back */
    bool is_drain_awaited;  /* the arbiter was told that it will hear when that has happened */
    bool is_joint;          /* others hold turns at the same moment; valid with `number` */
    uint32_t job;           /* 0, or the number of the job's turn that it is part of; valid with `number` */
    bool is_next_requested; /* the next turn was asked for before it was needed */
};

/* Whether a turn is held after the call: the one that is held already, or the one that the page shows. A turn that the
 * arbiter asks back is given back first. */
bool arbiter_turn_take(struct arbiter_turn *turn, struct arbiter_link *link);

/* The number of the last turn that the card had with other cards of a job; 0 = it has its turns by itself. */
uint32_t arbiter_turn_job(const struct arbiter_link *link);

/* Whether the job has cards in other containers; the most batches that one of these has had in the job's last turn,
 * since that is asked back; whether one of them may wait for this card. */
bool arbiter_turn_job_spans(const struct arbiter_link *link);
uint32_t arbiter_turn_job_batches(const struct arbiter_link *link);
bool arbiter_turn_is_job_awaited(const struct arbiter_link *link);

/* Asks for a turn, unless that has been done, and waits for it for at most 20 ms, or until `is_over(argument)`, which
 * is asked every 0.2 ms; NULL: never. */
void arbiter_turn_await(struct arbiter_turn *turn, struct arbiter_link *link, bool (*is_over)(void *), void *argument);

/* Asks for the next turn without waiting for it. */
void arbiter_turn_ask(struct arbiter_turn *turn, struct arbiter_link *link);

/* Whether the arbiter asks the turn back, or has taken it; false if no turn is held. */
bool arbiter_turn_is_asked_to_yield(const struct arbiter_turn *turn, const struct arbiter_link *link);

/* When the card is expected to be free for the turn; 0 = now. */
uint64_t arbiter_turn_free_at(const struct arbiter_turn *turn, const struct arbiter_link *link);

/* How much GPU time may be in flight in the turn; there is a page. */
uint64_t arbiter_turn_depth(const struct arbiter_link *link);

/* The time by which the turn is to end for another client's expected arrival; 0 = there is none, or it has passed.
 * There is a page. */
uint64_t arbiter_turn_until(const struct arbiter_link *link);

/* Gives the turn back, if one is held: its work is expected to drain in `rest`. `is_awaited`: a thread waits for it,
 * and arbiter_turn_note_drained will be called. */
void arbiter_turn_give_back(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t rest, bool is_awaited);

/* Gives back the turn that is held and a next one that has been granted already: the process has to wait for tokens. */
void arbiter_turn_give_back_all(struct arbiter_turn *turn, struct arbiter_link *link);

/* The work of the turn that was given back last has drained. Tells the arbiter if it is to hear that, or if it is
 * earlier than announced. */
void arbiter_turn_note_drained(struct arbiter_turn *turn, struct arbiter_link *link);

/* The launched work has drained and took `cost`. Tells the arbiter if that is earlier than announced, and gives the
 * turn back if less than 0.5 ms of its budget is left. */
void arbiter_turn_spend(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t cost);

#endif
