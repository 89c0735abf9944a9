#include "arbiter/schedule/contention.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/current_turn.h"
#include "arbiter/schedule/group_turn.h"
#include "arbiter/schedule/joint_turns.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/tenant/turn_allowance.h"
#include "common/arithmetic.h"

struct census {
    unsigned active_tenants, guarantee_sum, without_guarantee, with_fixed_share;
    uint64_t suitable_turn; /* the shortest of a tenant that can be late; UINT64_MAX = there is none */
};

/* A latency-sensitive tenant interrupts the turns of others, so it does not need short ones. */
static bool can_be_late(const struct tenant *tenant) {
    return tenant->suitable_turn_ns && tenant->demand.policy == POLICY_BURST && tenant->demand.guarantee &&
           !tenant_is_latency_sensitive(tenant);
}

static struct census count_tenants(const struct schedule *schedule, uint64_t now) {
    struct census census = {.suitable_turn = UINT64_MAX};
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (!tenant->is_taken || !tenant->clients || !tenant_is_active(tenant, now)) continue;
        census.active_tenants++;
        census.guarantee_sum += tenant->demand.guarantee;
        census.without_guarantee += tenant->demand.guarantee == 0;
        census.with_fixed_share += tenant->demand.policy == POLICY_FIXED;
        if (can_be_late(tenant)) census.suitable_turn = min_u64(census.suitable_turn, tenant->suitable_turn_ns);
    }
    return census;
}

unsigned contention_active_tenants(const struct schedule *schedule, uint64_t now) {
    return count_tenants(schedule, now).active_tenants;
}

uint64_t contention_turn_budget(const struct schedule *schedule, uint64_t now) {
    struct census census = count_tenants(schedule, now);
    return turn_allowance_budget(census.active_tenants, census.with_fixed_share > 0, census.suitable_turn);
}

/* An inactive tenant has to ask before it launches, because it would not learn in time that others begin. */
static bool needs_turns(const struct schedule *schedule, const struct tenant *tenant, unsigned active_tenants,
                        uint64_t now) {
    if (tenant->is_paced) return true;
    if (schedule->connected_tenants < 2) return false;
    return !tenant_is_active(tenant, now) || active_tenants > 1;
}

/* Each member of a group limits itself where there is no heartbeat, and does not know how many others there are. */
static unsigned fallback_percent(const struct tenant *tenant, const struct census *census) {
    unsigned percent = turn_allowance_fallback(&tenant->demand, census->guarantee_sum, census->without_guarantee);
    return tenant->demand.is_group ? (unsigned)max_u64(1, percent / tenant->clients) : percent;
}

/* A turn without limits becomes void when the card is contended. */
static void publish(struct schedule *schedule, int client, const struct census *census, uint64_t now) {
    const struct tenant *tenant = &schedule->tenants[schedule->clients[client].tenant];
    struct arbitration_page *page = &schedule->clients[client].page;
    bool has_turn = (schedule->turn.number && schedule->turn.client == client && schedule->turn.drains_at == 0) ||
                    group_turn_is_held_by(schedule, client) || joint_turns_has(schedule, client, now);
    page->contended = tenant->is_contended;
    page->fallback_percent = tenant->is_contended ? fallback_percent(tenant, census) : FULL_CORES;
    if (tenant->is_contended && !has_turn) page->turn = 0;
    clients_mark_changed(schedule, client);
}

/* The tenant has the card to itself again: its waiting clients may launch, and no time is charged. */
static void release_waiters(struct schedule *schedule, int tenant_index, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[tenant_index];
    if (schedule->turn.number && schedule->turn.tenant == tenant_index) current_turn_end(schedule, now, now);
    while (tenant->first_waiting != SCHEDULE_NONE) {
        int32_t client = tenant->first_waiting;
        clients_dequeue(schedule, client);
        clients_publish_turn(schedule, client, clients_new_turn_number(schedule), UINT64_MAX, UINT64_MAX);
    }
}

void contention_refresh(struct schedule *schedule, uint64_t now) {
    struct census census = count_tenants(schedule, now);
    schedule->is_contention_stale = false;
    schedule->active_tenants_at_refresh = census.active_tenants;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        struct tenant *tenant = &schedule->tenants[i];
        if (!tenant->is_taken || !tenant->clients) continue;
        tenant->is_contended = needs_turns(schedule, tenant, census.active_tenants, now);
        if (!tenant->is_contended) release_waiters(schedule, i, now);
    }
    for (int32_t i = 0; i < schedule->clients_high; i++)
        if (schedule->clients[i].is_taken) publish(schedule, i, &census, now);
}
