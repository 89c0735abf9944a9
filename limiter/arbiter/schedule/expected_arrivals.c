#include "arbiter/schedule/expected_arrivals.h"

#include "arbiter/predict/arrival_predictor.h"
#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/current_turn.h"
#include "arbiter/schedule/next_turn.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/tenant.h"
#include "common/arithmetic.h"

/* Reserved time is limited to 1/32 of the card's time, with a burst of 2 ms. */
enum { RESERVATION_DIVISOR = 32 };
#define RESERVATION_BURST (2 * NS_PER_MS)

/* After this much reserved time, one turn may end 0.4 ms after the arrival. Otherwise a program whose kernels always
 * end shortly before the arrivals would lose the same time at each of them. */
#define LATE_END_CREDIT NS_PER_MS

/* Whether the tenant is no group, whose arrivals are those of many programs, and no job's, is idle, its client is
 * connected and predicted, and would preempt the holder if it arrived. */
static bool is_reservable(struct schedule *schedule, int tenant, int holder, uint64_t now) {
    struct tenant *expected = &schedule->tenants[tenant];
    if (tenant == holder || expected->demand.is_group || expected->is_of_job || !expected->is_taken ||
        expected->waiting_since || !clients_is_connected(schedule, expected->regular_client))
        return false;
    if (schedule->clients[expected->regular_client].tenant != tenant) return false;
    if (!tenant_next_arrival(expected, now)) return false;
    tenant_refill(expected, now);
    return next_turn_would_preempt(schedule, holder, tenant);
}

struct expected_arrival expected_arrivals_next(struct schedule *schedule, int holder, uint64_t now) {
    struct expected_arrival earliest = {.client = SCHEDULE_NONE};
    if (schedule->next_reservation_at > now) return earliest;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        if (!is_reservable(schedule, i, holder, now)) continue;
        struct expected_arrival arrival = {schedule->tenants[i].regular_client,
                                           tenant_next_arrival(&schedule->tenants[i], now)};
        if (earliest.client == SCHEDULE_NONE || arrival.at < earliest.at) earliest = arrival;
    }
    return earliest;
}

bool expected_arrivals_is_near(const struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t now) {
    uint64_t free_at = max_u64(now, schedule->charged_until);
    return expected_arrival->client != SCHEDULE_NONE && expected_arrival->at <= free_at + EXPECTED_ARRIVALS_NEAR;
}

uint64_t expected_arrivals_turn_end(struct schedule *schedule, const struct expected_arrival *expected_arrival) {
    bool may_end_late = expected_arrival->at && schedule->reserved_ns >= LATE_END_CREDIT;
    if (may_end_late) schedule->reserved_ns = 0;
    return expected_arrival->at + (may_end_late ? ARBITRATION_IDLE_BEFORE_ARRIVAL_MAX_NS : 0);
}

/* The reserved client pays for the idle card as for any turn, and the tenant that had the last turn is treated as
 * preempted: the handovers are charged to the reserved one. */
void expected_arrivals_reserve(struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t budget, uint64_t now) {
    int32_t tenant_index = schedule->clients[expected_arrival->client].tenant;
    tenant_return(&schedule->tenants[tenant_index], schedule->virtual_time);
    if (clients_is_connected(schedule, schedule->last_client)) {
        schedule->preempting_tenant = tenant_index;
        schedule->preempted_tenant = schedule->clients[schedule->last_client].tenant;
    }
    current_turn_begin(schedule, expected_arrival->client, budget, 0, now);
    schedule->turn.expected_at = expected_arrival->at;
    schedule->turn.begin_by = max_u64(schedule->turn.began_at, expected_arrival->at + ARRIVAL_GRACE);
    schedule->turn.check_idle_at = schedule->turn.begin_by;
}

static void charge_reservation(struct schedule *schedule, uint64_t now) {
    uint64_t began = schedule->turn.began_at, reserved_ns = now > began ? now - began : 0;
    uint64_t saved_from = now - min_u64(now, RESERVATION_BURST * RESERVATION_DIVISOR);
    schedule->reserved_ns += reserved_ns;
    schedule->next_reservation_at =
        max_u64(schedule->next_reservation_at, saved_from) + reserved_ns * RESERVATION_DIVISOR;
}

void expected_arrivals_conclude(struct schedule *schedule, bool has_come, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    if (!turn->expected_at) return;
    charge_reservation(schedule, now);
    turn->expected_at = 0;
    if (!has_come) return;
    tenant_note_arrival(&schedule->tenants[turn->tenant], turn->client, now);
    turn->begin_by = turn->check_idle_at = now + CURRENT_TURN_TIME_TO_BEGIN;
}
