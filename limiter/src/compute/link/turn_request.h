/* How this process gets a turn on one card: it waits for the container's turn (container_turn.h), which it shares with
 * the other processes of the container, and on a contended card also for one of the arbiter's (card_turn.h). */
#ifndef VGPU_COMPUTE_LINK_TURN_REQUEST_H
#define VGPU_COMPUTE_LINK_TURN_REQUEST_H

#include "compute/link/early_start.h"
#include "compute/link/request_state.h"

/* Whether launches on the card need turns: the container has a fixed share of it (`has_share`), or the page says that
 * the card is contended. One load from memory. */
bool turn_request_is_needed(const struct turn_request *request, bool has_share);

/* Connects to the arbiter where that is due and, while there is a connection, marks the card as used in the region, as
 * a turn would do. Called periodically. Takes LOCK_ARBITER_LINK if it is free, LOCK_CONTAINER and LOCK_REGION. */
void turn_request_update(struct turn_request *request);

/* Waits for the turn and returns its limits. `early`: while there is work elsewhere, the wait for tokens may end with a
 * loan, and on a linked card, while work is late there, with a turn of one launch. NULL = never. Returns without a turn
 * if nothing limits the process any more, LOCK_REGION cannot be taken, or the arbiter gives no turn within 20 s; so
 * launches are delayed but never fail. Takes LOCK_REGION and LOCK_ARBITER_LINK; the caller owns the gate and holds no
 * lock. */
struct turn_limits turn_request_take(struct turn_request *request, struct early_request *early);

/* Whether the arbiter's turn has no budget and the tokens suffice for another turn after this one, which is expected to
 * be charged `expected` ns: then the arbiter's turn goes on. */
bool turn_request_is_unbounded(const struct turn_request *request, uint64_t expected);

/* Gives the arbiter's turn back: nothing more is launched in it, and its work is expected to drain in `rest` ns.
 * `is_awaited`: a thread waits for the work, and card_turn_note_drained will be called. Takes LOCK_ARBITER_LINK. */
void turn_request_give_back(struct turn_request *request, uint64_t rest, bool is_awaited);

/* Ends the turn and charges the token bucket with `cost` ns of GPU time. If turn_request_give_back was not called, what
 * is left of the arbiter's turn is used by the next turn. Takes LOCK_REGION; if that fails, the time is charged with
 * the next turn. Takes LOCK_ARBITER_LINK. */
void turn_request_end(struct turn_request *request, uint64_t cost);

#endif
