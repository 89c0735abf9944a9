/* The container's turn on one card, as this process asks for it: waits until the tokens, the other processes of the
 * container, and the node's arbiter (link.h) allow it. Who grants turns is known here alone. */
#ifndef VGPU_COMPUTE_TURN_REQUEST_H
#define VGPU_COMPUTE_TURN_REQUEST_H

#include "compute/arbiter_turn.h"
#include "compute/turn_limits.h"
#include "region/region.h"

/* Between turn_request_take and turn_request_end the fields are the caller's who took it. */
struct turn_request {
    uint8_t uuid[UUID_SIZE];  /* from the beginning on */
    struct region_card *card; /* NULL until the first turn, or where the region has no row left */
    uint32_t holder_id;
    uint32_t ticket;       /* for a turn that is waited for */
    unsigned share;        /* percent, as of the turn's beginning; the whole where the arbiter's turns alone hold it */
    uint64_t uncharged_ns; /* used, and not yet charged: the region's lock could not be had */
    struct arbiter_turn arbiter_turn;
    struct arbiter_link link;
};

/* Whether launches need turns on the card now, by what it was told last; costs a load from memory. And a look at what
 * is so: connects, and shows that the card is used. */
bool turn_request_is_needed(const struct turn_request *request, bool has_share);
void turn_request_update(struct turn_request *request);

/* Waits for the turn. Where nothing limits this process on the card any more, or nobody can say who has the turn, it is
 * taken all the same. */
struct turn_limits turn_request_take(struct turn_request *request);

/* When the card is expected to be free for the turn that was taken, CLOCK_MONOTONIC in ns; 0 = now. */
uint64_t turn_request_free_at(const struct turn_request *request);

/* Whether the arbiter wants the turn back, or has taken it. */
bool turn_request_is_asked_to_yield(const struct turn_request *request);

/* The turn will be needed until then. */
void turn_request_extend(struct turn_request *request, uint64_t until);

/* Whether the arbiter's turn may go on when this one ends, which is expected to be charged so much. */
bool turn_request_is_unbounded(const struct turn_request *request, uint64_t expected);

/* Nothing more is launched in the turn; what was launched is expected to be done in `rest` ns. */
void turn_request_give_back(struct turn_request *request, uint64_t rest);

/* Asks the arbiter for the next turn before this one is charged with what it is expected to take, where it is no debt
 * that is to be waited for. */
void turn_request_ask_next(struct turn_request *request, uint64_t expected);

/* Ends the turn, which used so many ns of the card. Without turn_request_stop before, what is left of the arbiter's
 * turn is kept for the next one. */
void turn_request_end(struct turn_request *request, uint64_t cost);

/* Counts a launch that waited so long. */
void turn_request_count_wait(struct turn_request *request, uint64_t ns);

#endif
