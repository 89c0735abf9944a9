/* The turn that the node's arbiter gave this process on a card, through its link. */
#ifndef VGPU_COMPUTE_ARBITER_TURN_H
#define VGPU_COMPUTE_ARBITER_TURN_H

#include "compute/arbiter_link.h"

/* All times in ns. */
struct arbiter_turn {
    uint32_t number;        /* its number, 0 = none is held */
    uint64_t budget_left;   /* of its budget */
    uint32_t last_returned; /* the last one that was given back */
    uint64_t drains_at;     /* when what was launched in it is done, as the arbiter was told; CLOCK_MONOTONIC */
    bool is_next_requested; /* for the next one */
};

/* Takes the turn that the page shows, if there is one. One that is held and was not called back stays. */
bool arbiter_turn_take(struct arbiter_turn *turn, struct arbiter_link *link);

/* Asks for a turn where that was not done, and waits for it; but a while. */
void arbiter_turn_await(struct arbiter_turn *turn, struct arbiter_link *link);

/* Asks for the next turn. */
void arbiter_turn_ask(struct arbiter_turn *turn, struct arbiter_link *link);

/* Whether the arbiter wants the turn back, or has taken it. */
bool arbiter_turn_is_asked_to_yield(const struct arbiter_turn *turn, const struct arbiter_link *link);

/* When the card is expected to be free for the turn, CLOCK_MONOTONIC; 0 = now. And what may be in flight in it. */
uint64_t arbiter_turn_free_at(const struct arbiter_turn *turn, const struct arbiter_link *link);
uint64_t arbiter_turn_depth(const struct arbiter_link *link);

/* The moment at which the turn is to end, CLOCK_MONOTONIC; 0 = none, or it has passed. */
uint64_t arbiter_turn_until(const struct arbiter_link *link);

/* Gives the turn back: what was launched in it is done in `rest`. With the one that was asked for too early. */
void arbiter_turn_give_back(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t rest);
void arbiter_turn_give_back_all(struct arbiter_turn *turn, struct arbiter_link *link);

/* What was launched took so long, and is done. Tells the arbiter where that is sooner than it was told, and gives back
 * a turn of which too little is left. */
void arbiter_turn_spend(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t cost);

#endif
