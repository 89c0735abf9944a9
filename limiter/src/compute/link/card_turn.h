/* The turn of the arbiter's on a card that containers contend for, as the request for a turn uses it (arbiter_turn.h).
 */
#ifndef VGPU_COMPUTE_LINK_CARD_TURN_H
#define VGPU_COMPUTE_LINK_CARD_TURN_H

#include "compute/link/early_start.h"
#include "compute/link/request_state.h"

/* Waits for the turn and returns its limits. Without one after 20 s, or when the card is not contended any more, those
 * of a process that goes on without the arbiter. A launch that another card of the job waits for gets a turn for
 * itself; `early` says so of the process's own cards, and may be NULL. Takes LOCK_REGION and LOCK_ARBITER_LINK. */
struct turn_limits card_turn_take(struct turn_request *request, const struct early_request *early);

/* The work of a turn that was given back stays on the card, beside the turns of others. Asks for a turn for it, without
 * waiting, and takes it when the arbiter has given it: called again and again until the work has drained. The caller
 * owns the gate. Takes LOCK_ARBITER_LINK, and LOCK_REGION. */
void card_turn_resume(struct turn_request *request);

/* When the card is expected to be free for the turn, CLOCK_MONOTONIC in ns; 0 = now. */
uint64_t card_turn_free_at(const struct turn_request *request);

/* Whether turn_request_take would find a turn of the arbiter's, as far as the arbiter is concerned. */
bool card_turn_is_at_hand(const struct turn_request *request);

/* Whether the turn is one of the arbiter's. */
bool card_turn_is_held(const struct turn_request *request);

/* Whether the turn is held jointly with clients of other containers, and nothing else limits it. */
bool card_turn_is_joint(const struct turn_request *request);

/* Whether the turn is part of a job's turn on linked cards. */
bool card_turn_is_of_job(const struct turn_request *request);

/* Whether the turn is part of a job's turn on cards of several containers (linked_window_spans). */
bool card_turn_spans(const struct turn_request *request);

/* Whether the arbiter asks the turn back, or has taken it. */
bool card_turn_is_asked_to_yield(const struct turn_request *request);

/* Asks the arbiter for the next turn before this one is charged, unless the expected charge of `expected` ns empties
 * the token bucket: then the process has to wait for tokens first. Takes LOCK_ARBITER_LINK. */
void card_turn_ask_next(struct turn_request *request, uint64_t expected);

/* Waits for at most `ns` for a turn that card_turn_ask_next asked for; returns whether it has come. */
bool card_turn_await_next(struct turn_request *request, uint64_t ns);

/* The work of the turn that was given back last has drained: tells the arbiter if that is earlier than announced. Takes
 * LOCK_ARBITER_LINK. */
void card_turn_note_drained(struct turn_request *request);

#endif
