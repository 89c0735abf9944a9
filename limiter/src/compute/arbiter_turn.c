#include "compute/arbiter_turn.h"

#include "common/arithmetic.h"
#include "common/clock.h"

/* Whether the arbiter is there is looked at again as often. */
#define NAP (20 * NS_PER_MS)

/* An arbiter that says that the card is busy for longer is not believed. */
#define FREE_MOST (250 * NS_PER_MS)

/* What is not worth a turn of its own. */
#define LEFT_LEAST (NS_PER_MS / 2)

bool grant_is_called_back(const struct grant *grant, const struct link *link) {
    return grant->turn && link_is_called_back(link, grant->turn);
}

bool grant_take(struct grant *grant, struct link *link) {
    if (grant_is_called_back(grant, link)) grant_give_back(grant, link, 0);
    if (grant->turn) return true;
    grant->turn = link_turn(link);
    grant->is_asked &= grant->turn == 0;
    if (grant->turn) grant->left = __atomic_load_n(&link_page(link)->budget_ns, __ATOMIC_RELAXED);
    return grant->turn != 0;
}

void grant_await(struct grant *grant, struct link *link) {
    if (!grant->is_asked) link_want(link);
    grant->is_asked = false;
    link_nap(link, lesser(NAP, terms_fresh_for(link_page(link), moment_now())));
}

void grant_ask(struct grant *grant, struct link *link) {
    link_want(link);
    grant->is_asked = link_turn(link) == 0; /* one that it was given unasked may be taken before it is begun */
}

uint64_t grant_free_at(const struct grant *grant, const struct link *link) {
    if (!grant->turn) return 0;
    uint64_t free_at = __atomic_load_n(&link_page(link)->free_at, __ATOMIC_RELAXED);
    return free_at < moment_now() + FREE_MOST ? free_at : 0;
}

uint64_t grant_depth(const struct link *link) { return __atomic_load_n(&link_page(link)->depth_ns, __ATOMIC_RELAXED); }

uint64_t grant_until(const struct link *link) {
    uint64_t until = __atomic_load_n(&link_page(link)->until, __ATOMIC_RELAXED);
    return until > moment_now() ? until : 0;
}

void grant_give_back(struct grant *grant, struct link *link, uint64_t rest) {
    if (!grant->turn) return;
    bool is_taken = link_turn(link) != grant->turn; /* which the arbiter needs not be told */
    if (!is_taken) link_done(link, grant->turn, rest);
    grant->done = grant->turn;
    grant->ends = moment_now() + rest;
    grant->turn = 0;
}

void grant_give_back_all(struct grant *grant, struct link *link) {
    grant_give_back(grant, link, 0);
    grant->turn = link_turn(link);
    grant_give_back(grant, link, 0);
}

static void correct(struct grant *grant, struct link *link) {
    if (!grant->done || grant->turn || grant->ends < moment_now() + ARBITRATION_EARLY_NS) return;
    link_done(link, grant->done, 0);
    grant->ends = 0;
}

void grant_spend(struct grant *grant, struct link *link, uint64_t cost) {
    correct(grant, link);
    if (grant->left == UINT64_MAX) return;
    grant->left -= lesser(cost, grant->left);
    if (grant->left < LEFT_LEAST) grant_give_back(grant, link, 0);
}
