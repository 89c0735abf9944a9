#include "compute/link/arbiter_turn.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/turn/turn_limits.h"

/* How long a thread waits before it checks again whether the arbiter is reachable. */
#define WAIT_MAX (20 * NS_PER_MS)

/* How often it is asked meanwhile whether the wait is over for another reason. */
#define LOOK_INTERVAL (200 * NS_PER_US)

/* Bounds `free_at`: a page that claims that the card is busy for longer is not believed. The arbiter bounds the rest of
 * a turn by this time, too. */
#define FREE_AT_MAX (250 * NS_PER_MS)

/* The rest of a turn that is not worth keeping: little more than two handovers. */
#define BUDGET_LEFT_MIN (NS_PER_MS / 2)

bool arbiter_turn_is_asked_to_yield(const struct arbiter_turn *turn, const struct arbiter_link *link) {
    return turn->number && arbiter_link_is_asked_to_yield(link, turn->number);
}

static void read_limits(struct arbiter_turn *turn, const struct arbitration_page *page) {
    turn->budget_left = __atomic_load_n(&page->budget_ns, __ATOMIC_RELAXED);
    turn->is_joint = __atomic_load_n(&page->joint, __ATOMIC_RELAXED) != 0;
    turn->job = __atomic_load_n(&page->job, __ATOMIC_RELAXED);
}

uint32_t arbiter_turn_job(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return page ? __atomic_load_n(&page->job, __ATOMIC_RELAXED) : 0;
}

bool arbiter_turn_job_spans(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return page && __atomic_load_n(&page->job_spans, __ATOMIC_RELAXED) != 0;
}

uint32_t arbiter_turn_job_batches(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return page ? __atomic_load_n(&page->job_batches, __ATOMIC_RELAXED) : 0;
}

bool arbiter_turn_is_job_awaited(const struct arbiter_link *link) {
    const struct arbitration_page *page = arbiter_link_page(link);
    return page && __atomic_load_n(&page->job_awaited, __ATOMIC_RELAXED) != 0;
}

bool arbiter_turn_take(struct arbiter_turn *turn, struct arbiter_link *link) {
    if (arbiter_turn_is_asked_to_yield(turn, link)) arbiter_turn_give_back(turn, link, 0, false);
    if (turn->number) return true;
    turn->number = arbiter_link_turn(link);
    turn->is_next_requested &= turn->number == 0;
    if (turn->number) read_limits(turn, arbiter_link_page(link));
    return turn->number != 0;
}

void arbiter_turn_await(struct arbiter_turn *turn, struct arbiter_link *link, bool (*is_over)(void *), void *argument) {
    if (!turn->is_next_requested) arbiter_link_want(link);
    turn->is_next_requested = false;
    uint64_t now = clock_now(), until = now + min_u64(WAIT_MAX, turn_limits_fresh_for(arbiter_link_page(link), now));
    for (; now < until && !arbiter_link_turn(link); now = clock_now()) {
        if (is_over && is_over(argument)) return;
        arbiter_link_wait(link, min_u64(is_over ? LOOK_INTERVAL : WAIT_MAX, until - now));
        if (!is_over) return;
    }
}

/* A turn that has been granted already, as a reservation, may be revoked before it is used. It counts as not requested,
 * so that arbiter_turn_await asks again in that case. */
void arbiter_turn_ask(struct arbiter_turn *turn, struct arbiter_link *link) {
    arbiter_link_want(link);
    turn->is_next_requested = arbiter_link_turn(link) == 0;
}

uint64_t arbiter_turn_free_at(const struct arbiter_turn *turn, const struct arbiter_link *link) {
    if (!turn->number) return 0;
    uint64_t free_at = __atomic_load_n(&arbiter_link_page(link)->free_at, __ATOMIC_RELAXED);
    return free_at < clock_now() + FREE_AT_MAX ? free_at : 0;
}

uint64_t arbiter_turn_depth(const struct arbiter_link *link) {
    return __atomic_load_n(&arbiter_link_page(link)->depth_ns, __ATOMIC_RELAXED);
}

uint64_t arbiter_turn_until(const struct arbiter_link *link) {
    uint64_t until = __atomic_load_n(&arbiter_link_page(link)->end_by, __ATOMIC_RELAXED);
    return until > clock_now() ? until : 0;
}

void arbiter_turn_give_back(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t rest, bool is_awaited) {
    if (!turn->number) return;
    bool is_revoked = arbiter_link_turn(link) != turn->number;
    if (!is_revoked) arbiter_link_done(link, turn->number, rest, is_awaited);
    turn->last_returned = turn->number;
    turn->returned_at = clock_now();
    turn->drains_at = turn->returned_at + rest;
    turn->is_drain_awaited = is_awaited;
    turn->number = 0;
}

void arbiter_turn_give_back_all(struct arbiter_turn *turn, struct arbiter_link *link) {
    arbiter_turn_give_back(turn, link, 0, false);
    turn->number = arbiter_link_turn(link);
    arbiter_turn_give_back(turn, link, 0, false);
}

void arbiter_turn_note_drained(struct arbiter_turn *turn, struct arbiter_link *link) {
    bool is_news = turn->is_drain_awaited || turn->drains_at >= clock_now() + ARBITRATION_GRANT_LEAD_NS;
    if (!turn->last_returned || turn->number || !is_news) return;
    arbiter_link_done(link, turn->last_returned, 0, false);
    turn->drains_at = 0;
    turn->is_drain_awaited = false;
}

void arbiter_turn_spend(struct arbiter_turn *turn, struct arbiter_link *link, uint64_t cost) {
    arbiter_turn_note_drained(turn, link);
    if (turn->budget_left == UINT64_MAX) return;
    turn->budget_left -= min_u64(cost, turn->budget_left);
    if (turn->budget_left < BUDGET_LEFT_MIN) arbiter_turn_give_back(turn, link, 0, false);
}
