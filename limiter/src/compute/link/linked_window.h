/* A turn as a window of cards that open and close together (linked_turn.h, region/linked_cards.h). */
#ifndef VGPU_COMPUTE_LINK_LINKED_WINDOW_H
#define VGPU_COMPUTE_LINK_LINKED_WINDOW_H

#include "compute/link/linked_turn.h"
#include "compute/link/request_state.h"

/* Whether the card opens and closes with other ones (linked_turn.h), as of the turn's beginning. */
bool linked_window_is_any(const struct turn_request *request);

/* Notes that the card opens and closes with other ones, or alone, from this turn on. */
void linked_window_note_linked(struct turn_request *request, bool is_linked);

/* Opens the card in a window and returns 0, or the ns to wait until all linked cards have repaid. `view`: the linked
 * cards, as linked_turn_look found them. The caller holds LOCK_REGION. */
uint64_t linked_window_take(struct turn_request *request, struct linked_view *view, uint64_t now);

/* The ns to wait until the share of a job's card admits it to a turn: until all linked cards have repaid, or one of
 * them has begun. `view` and the caller as for linked_window_take. */
uint64_t linked_window_await_debts(struct turn_request *request, struct linked_view *view, uint64_t now);

/* The turn of the arbiter's, which is part of a job's turn, is a window with its number. */
void linked_window_open_for_job(struct turn_request *request);

/* Whether the arbiter's request to yield leaves room for one more launch after `used` ns: the launches end at the same
 * point of the program on all linked cards. Takes no lock. Called by the thread that launches. */
enum linked_verdict linked_window_judge_last(const struct turn_request *request, uint64_t used, uint64_t now);

/* Whether a launch of this thread would go on with a batch. */
bool linked_window_is_in_batch(const struct turn_request *request, uint64_t now);

/* Whether the card's turns are those of a job with cards in other containers: the arbiter opens and closes it. Fixed
 * shares are repaid between these turns. */
bool linked_window_spans(const struct turn_request *request);

/* Without a turn of such a job: whether a card in another container may wait for a launch on this one, because it has
 * work that should have ended, or, within 35 ms after the turn's end, has had more batches in it. */
bool linked_window_is_awaited_elsewhere(const struct turn_request *request);

/* Takes the closed card for one launch that another card waits for; false: not now. `is_sure`: another card waits, or
 * may do so. Of other processes only the region says that; `is_late`: of work that should have ended. Takes
 * LOCK_REGION. */
bool linked_window_seize(struct turn_request *request, bool is_sure, bool is_late);

/* A launch for another card took `cost`, some of which it may have spun for that card. */
void linked_window_note_for_others(struct turn_request *request, uint64_t cost);

/* Whether the turn, which may be a window of linked cards, admits one more launch after `used` ns of them. `fits`: its
 * budget has room. Takes no lock. Called by the thread that launches. */
enum linked_verdict linked_window_judge(const struct turn_request *request, uint64_t used, bool fits, uint64_t now);

/* That thread's launch was admitted, by this verdict; with it the turn has `used` ns. Takes no lock. */
void linked_window_note_launch(struct turn_request *request, uint64_t used, enum linked_verdict verdict, uint64_t now);

/* A thread begins to wait for the work of the turn, or has waited for it, which other linked cards may want to know.
 * Takes no lock. */
void linked_window_note_wait(const struct turn_request *request, bool is_begun);

#endif
