#include "tenant.h"

#include "common/arithmetic.h"

enum { FULL = 100 };

/* A tenth more than the guarantee (percent by thousands), for handovers are in the time that is held. */
enum { REFILL = 11 };

#define DUE_MOST   ((int64_t)(20 * NS_PER_MS))
#define OWED_MOST  ((int64_t)(10000 * NS_PER_MS))
#define PAUSE_MOST (1000000 * NS_PER_MS)

/* Four short turns make a tenant hasty, a long one ends it, or the second where there were eight: it may have been the
 * machine that was late. */
enum { SHORTS_HASTY = 4, SHORTS_MOST = 8 };

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    if (value < least) return least;
    return value > most ? most : value;
}

struct tenant tenant_new(const struct demand *demand, uint64_t now) {
    return (struct tenant){.is_taken = true,
                           .demand = *demand,
                           .first = -1,
                           .last = -1,
                           .due = DUE_MOST,
                           .refilled_at = now,
                           .overrun_budget = overrun_budget_new(now),
                           .regular_client = -1,
                           .short_turns = SHORTS_HASTY};
}

static uint64_t since(uint64_t then, uint64_t now) {
    uint64_t passed = now > then ? now - then : 0;
    return passed < PAUSE_MOST ? passed : PAUSE_MOST;
}

void tenant_refill(struct tenant *tenant, uint64_t now) {
    uint64_t passed = since(tenant->refilled_at, now);
    int64_t earned = (int64_t)(passed * tenant->demand.guarantee * REFILL / 1000);
    tenant->due = clamp(tenant->due + earned, -OWED_MOST, DUE_MOST);
    overrun_budget_refill(&tenant->overrun_budget, now);
    if (now > tenant->refilled_at) tenant->refilled_at = now;
}

void tenant_charge(struct tenant *tenant, uint64_t ns, bool others_wait) {
    uint64_t owed = ns < (uint64_t)OWED_MOST ? ns : (uint64_t)OWED_MOST;
    if (others_wait) tenant->due = clamp(tenant->due - (int64_t)owed, -OWED_MOST, DUE_MOST);
    tenant->virtual_time += tenant_virtual_time(ns, tenant->demand.weight);
    tenant->held_ns += ns;
}

void tenant_charge_handovers(struct tenant *one, struct tenant *other) {
    int64_t handovers = 2 * (int64_t)TENANT_HANDOVER;
    one->due = clamp(one->due + handovers, -OWED_MOST, DUE_MOST);
    other->due = clamp(other->due - handovers, -OWED_MOST, DUE_MOST);
}

void tenant_note_arrival(struct tenant *tenant, int client, uint64_t now) {
    if (tenant->regular_client != client) tenant->arrivals = (struct arrival_predictor){0};
    tenant->regular_client = client;
    arrival_predictor_note_arrival(&tenant->arrivals, now);
}

bool tenant_has_finished_visit(const struct tenant *tenant, uint64_t now) {
    return arrival_predictor_next(&tenant->arrivals) && tenant->visit_ns &&
           now >= tenant->arrivals.last + tenant->visit_ns * 7 / 8;
}

void tenant_learn_turn_length(struct tenant *tenant, bool was_short) {
    if (!was_short)
        tenant->short_turns -= (uint32_t)min_u64(tenant->short_turns, SHORTS_HASTY);
    else if (tenant->short_turns < SHORTS_MOST)
        tenant->short_turns++;
}

bool tenant_is_latency_sensitive(const struct tenant *tenant) { return tenant->short_turns >= SHORTS_HASTY; }

bool tenant_is_active(const struct tenant *tenant, uint64_t now) {
    return tenant->seen_at != 0 && now < tenant->seen_at + TENANT_ACTIVE_NS;
}

uint64_t tenant_virtual_time(uint64_t ns, uint32_t weight) { return ns * FULL / (weight ? weight : 1); }

void tenant_leave(struct tenant *tenant, uint64_t virtual_time) { tenant->virtual_time_at_leave = virtual_time; }

void tenant_return(struct tenant *tenant, uint64_t virtual_time) {
    tenant->virtual_time += virtual_time - tenant->virtual_time_at_leave;
}

void tenant_bound_lag(struct tenant *tenant, uint64_t virtual_time, uint64_t behind) {
    if (tenant->virtual_time + behind < virtual_time) tenant->virtual_time = virtual_time - behind;
}
