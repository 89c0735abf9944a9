/* Who comes at regular moments finds the card free: the turn before is to end then, and the card is kept for it. */
#include "expected_arrivals.h"

#include "arrival_predictor.h"
#include "clients.h"
#include "common/arithmetic.h"
#include "current_turn.h"
#include "next_turn.h"
#include "schedule_state.h"
#include "tenant.h"

/* Of the card's time no more than one part in so many is kept, but for so much saved up. */
enum { KEPT_SELDOM = 32 };
#define KEPT_SAVED (2 * NS_PER_MS)

/* When so much has been kept, who makes way may have one kernel more: where kernels and moments always meet in the same
 * way, he would lose the same each time. */
#define KEPT_MUCH NS_PER_MS

/* That a tenant's client comes next, for which that other one has to make way. */
static bool is_expected(struct schedule *schedule, int tenant, int holder, uint64_t now) {
    struct tenant *one = &schedule->tenants[tenant];
    if (tenant == holder || !one->is_taken || one->waits_since || !clients_is_connected(schedule, one->regular_client))
        return false;
    if (schedule->clients[one->regular_client].tenant != tenant) return false;
    arrival_predictor_skip_missed(&one->arrivals, now);
    if (!arrival_predictor_next(&one->arrivals)) return false;
    tenant_refill(one, now);
    return next_turn_would_preempt(schedule, holder, tenant);
}

struct expected_arrival expected_arrivals_next(struct schedule *schedule, int holder, uint64_t now) {
    struct expected_arrival found = {.client = SCHEDULE_NONE};
    if (schedule->next_reservation_at > now) return found;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        if (!is_expected(schedule, i, holder, now)) continue;
        struct expected_arrival one = {schedule->tenants[i].regular_client,
                                       arrival_predictor_next(&schedule->tenants[i].arrivals)};
        if (found.client == SCHEDULE_NONE || one.at < found.at) found = one;
    }
    return found;
}

bool expected_arrivals_is_near(const struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t now) {
    uint64_t free_at = max_u64(now, schedule->counted_until);
    return expected_arrival->client != SCHEDULE_NONE && expected_arrival->at <= free_at + EXPECTED_ARRIVALS_NEAR;
}

uint64_t expected_arrivals_turn_end(struct schedule *schedule, const struct expected_arrival *expected_arrival) {
    bool is_late = expected_arrival->at && schedule->reserved_ns >= KEPT_MUCH;
    if (is_late) schedule->reserved_ns = 0;
    return expected_arrival->at + (is_late ? ARBITRATION_KEPT_NS : 0);
}

/* What the card does not do meanwhile is the one's to pay, and the handovers that it costs the other. */
void expected_arrivals_reserve(struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t budget, uint64_t now) {
    int32_t place = schedule->clients[expected_arrival->client].tenant;
    tenant_return(&schedule->tenants[place], schedule->virtual_time);
    if (clients_is_connected(schedule, schedule->last)) {
        schedule->urgent = place;
        schedule->interrupted = schedule->clients[schedule->last].tenant;
    }
    current_turn_begin(schedule, expected_arrival->client, budget, 0, now);
    schedule->turn.expected_at = expected_arrival->at;
    schedule->turn.begins_by = max_u64(schedule->turn.began, expected_arrival->at + ARRIVAL_GRACE);
    schedule->turn.look_at = schedule->turn.begins_by;
}

static void pay(struct schedule *schedule, uint64_t now) {
    uint64_t began = schedule->turn.began, kept = now > began ? now - began : 0;
    uint64_t saved_from = now - min_u64(now, KEPT_SAVED * KEPT_SELDOM);
    schedule->reserved_ns += kept;
    schedule->next_reservation_at = max_u64(schedule->next_reservation_at, saved_from) + kept * KEPT_SELDOM;
}

void expected_arrivals_conclude(struct schedule *schedule, bool has_come, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    if (!turn->expected_at) return;
    pay(schedule, now);
    turn->expected_at = 0;
    if (!has_come) return;
    arrival_predictor_note_arrival(&schedule->tenants[turn->tenant].arrivals, now);
    turn->begins_by = turn->look_at = now + CURRENT_TURN_TIME_TO_BEGIN;
}
