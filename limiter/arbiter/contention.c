#include "contention.h"

#include "clients.h"
#include "current_turn.h"
#include "schedule_state.h"
#include "tenant.h"
#include "turn_allowance.h"

struct census {
    unsigned active, guaranteed, open, fixed;
};

static struct census count(const struct schedule *schedule, uint64_t now) {
    struct census census = {0};
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (!tenant->is_taken || !tenant->clients || !tenant_is_active(tenant, now)) continue;
        census.active++;
        census.guaranteed += tenant->demand.guarantee;
        census.open += tenant->demand.guarantee == 0;
        census.fixed += tenant->demand.policy == POLICY_FIXED;
    }
    return census;
}

unsigned contention_active_tenants(const struct schedule *schedule, uint64_t now) {
    return count(schedule, now).active;
}

uint64_t contention_turn_budget(const struct schedule *schedule, uint64_t now) {
    struct census census = count(schedule, now);
    return turn_allowance_budget(census.active, census.fixed > 0);
}

/* One that did nothing of late does not know of those that begin at the same time, unless it asks first. */
static bool is_contended(const struct schedule *schedule, const struct tenant *tenant, unsigned active, uint64_t now) {
    if (schedule->connected < 2) return false;
    return !tenant_is_active(tenant, now) || active > 1;
}

/* Turns that were given where none is needed bind nobody, and are worth nothing once one is. */
static void show(struct schedule *schedule, int client, const struct census *census) {
    const struct tenant *tenant = &schedule->tenants[schedule->clients[client].tenant];
    struct arbitration_page *page = &schedule->clients[client].page;
    bool has_turn = schedule->turn.number && schedule->turn.client == client && schedule->turn.ends_at == 0;
    page->contended = tenant->is_contended;
    page->fallback =
        tenant->is_contended ? turn_allowance_fallback(&tenant->demand, census->guaranteed, census->open) : FULL_CORES;
    if (tenant->is_contended && !has_turn) page->turn = 0;
    clients_mark_changed(schedule, client);
}

/* It has the card to itself again: who waits is let go, and nobody is charged. */
static void release(struct schedule *schedule, int place, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[place];
    if (schedule->turn.number && schedule->turn.tenant == place) current_turn_end(schedule, now, now);
    while (tenant->first != SCHEDULE_NONE) {
        int32_t client = tenant->first;
        clients_dequeue(schedule, client);
        clients_show_turn(schedule, client, clients_new_turn_number(schedule), UINT64_MAX, UINT64_MAX);
    }
}

void contention_refresh(struct schedule *schedule, uint64_t now) {
    struct census census = count(schedule, now);
    schedule->is_stale = false;
    schedule->contention_active_tenants = census.active;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        struct tenant *tenant = &schedule->tenants[i];
        if (!tenant->is_taken || !tenant->clients) continue;
        tenant->is_contended = is_contended(schedule, tenant, census.active, now);
        if (!tenant->is_contended) release(schedule, i, now);
    }
    for (int32_t i = 0; i < schedule->clients_high; i++)
        if (schedule->clients[i].is_taken) show(schedule, i, &census);
}
