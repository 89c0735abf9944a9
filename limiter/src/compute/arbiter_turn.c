#include "compute/arbiter_turn.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/turn_limits.h"

/* Whether the arbiter is there is looked at again as often. */
#define NAP (20 * NS_PER_MS)

/* An arbiter that says that the card is busy for longer is not believed. */
#define FREE_MOST (250 * NS_PER_MS)

/* What is not worth a turn of its own. */
#define LEFT_LEAST (NS_PER_MS / 2)

bool arbiter_turn_is_called_back(const struct arbiter_turn *turn, const struct arbiter_link *link) {
    return turn->number && arbiter_link_is_called_back(link, turn->number);
}

bool arbiter_turn_take(struct arbiter_turn *turn, struct arbiter_link *link) {
    if (arbiter_turn_is_called_back(turn, link)) arbiter_turn_give_back(turn, link, 0);
    if (turn->number) return true;
    turn->number = arbiter_link_turn(link);
    turn->is_asked &= turn->number == 0;
    if (turn->number) turn->left = __atomic_load_n(&arbiter_link_page(link)->budget_ns, __ATOMIC_RELAXED);
    return turn->number != 0;
}

void arbiter_turn_await(struct arbiter_turn *turn, struct arbiter_link *link) {
    if (!turn->is_asked) arbiter_link_want(link);
    turn->is_asked = false;
    arbiter_link_wait(link, min_u64(NAP, turn_limits_fresh_for(arbiter_link_page(link), clock_now())));
}

void arbiter_turn_ask(struct arbiter_turn *turn, struct arbiter_link *link) {
    arbiter_link_want(link);
    turn->is_asked = arbiter_link_turn(link) == 0; /* one that it was given unasked may be taken before it is begun */
}

uint64_t arbiter_turn_free_at(const struct arbiter_turn *turn, const struct arbiter_link *link) {
    if (!turn->number) return 0;
    uint64_t free_at = __atomic_load_n(&arbiter_link_page(link)->free_at, __ATOMIC_RELAXED);
    return free_at < clock_now() + FREE_MOST ? free_at : 0;
}

uint64_t arbiter_turn_depth(const struct arbiter_link *link) {
    return __atomic_load_n(&arbiter_link_page(link)->depth_ns, __ATOMIC_RELAXED);
}

uint64_t arbiter_turn_until(const struct arbiter_link *link) {
    uint64_t until = __atomic_load_n(&arbiter_link_page(link)->until, __ATOMIC_RELAXED);
    return until > clock_now() ? until : 0;
}

void arbiter_turn_give_back(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t rest) {
    if (!turn->number) return;
    bool is_taken = arbiter_link_turn(link) != turn->number; /* which the arbiter needs not be told */
    if (!is_taken) arbiter_link_done(link, turn->number, rest);
    turn->done = turn->number;
    turn->ends = clock_now() + rest;
    turn->number = 0;
}

void arbiter_turn_give_back_all(struct arbiter_turn *turn, struct arbiter_link *link) {
    arbiter_turn_give_back(turn, link, 0);
    turn->number = arbiter_link_turn(link);
    arbiter_turn_give_back(turn, link, 0);
}

static void correct(struct arbiter_turn *turn, struct arbiter_link *link) {
    if (!turn->done || turn->number || turn->ends < clock_now() + ARBITRATION_EARLY_NS) return;
    arbiter_link_done(link, turn->done, 0);
    turn->ends = 0;
}

void arbiter_turn_spend(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t cost) {
    correct(turn, link);
    if (turn->left == UINT64_MAX) return;
    turn->left -= min_u64(cost, turn->left);
    if (turn->left < LEFT_LEAST) arbiter_turn_give_back(turn, link, 0);
}
