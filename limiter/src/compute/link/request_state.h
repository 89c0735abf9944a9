/* The state of a request for turns on one card (turn_request.h), for the modules that serve it:
 *     container_turn.c  the turn among the processes of the container, from its token bucket
 *     card_turn.c       the turn among the containers of the card, from the node's arbiter
 *     linked_window.c   the turn as a window of linked cards
 *     early_start.c     launches that go before the share pays for them */
#ifndef VGPU_COMPUTE_LINK_REQUEST_STATE_H
#define VGPU_COMPUTE_LINK_REQUEST_STATE_H

#include "compute/link/arbiter_turn.h"
#include "compute/turn/turn_limits.h"
#include "region/region.h"

/* The fields belong to the thread that owns the gate (gate_machine.h), or that holds LOCK_GATE while the gate is open.
 * `link` has a lock of its own; any thread reads what is atomic, at any time. */
struct turn_request {
    uint8_t uuid[UUID_SIZE];  /* of the card; never changes */
    struct region_card *card; /* atomic; the card's row in the region; NULL before the first turn, or if the region has
                                 no row left */
    struct region_activity *activity; /* atomic; the card's counters in the region; NULL with `card` */
    uint32_t holder_id;               /* what this process writes as the row's `holder` */
    uint32_t ticket;                  /* place in the token bucket's queue while the process waits; 0 = none */
    unsigned share; /* percent, as of the turn's beginning; 100 = only the arbiter limits it, 0 = nothing does */
    const struct region_card *linked_card; /* atomic; `card` if it opens and closes with other ones (linked_turn.h), as
                                              of the turn's beginning; NULL: alone */
    bool is_in_window;                     /* the turn is a window of linked cards */
    uint32_t batches;                      /* that were admitted in it */
    bool has_one_launch;                   /* the turn is for one launch, which another linked card waits for */
    uint64_t for_others_ns; /* counted of such turns since the last window (linked_window_note_for_others) */
    uint64_t uncharged_ns; /* atomic; GPU time used but not yet charged, because LOCK_REGION could not be taken in time,
                              or another thread owned the request */
    struct arbiter_turn arbiter_turn;
    struct arbiter_link link;
};

#endif
