#include "allowance.h"
#include "parts.h"

struct census {
    unsigned active, guaranteed, open, fixed;
};

static struct census count(const struct schedule *schedule, uint64_t now) {
    struct census census = {0};
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (!tenant->is_taken || !tenant->clients || !tenant_is_active(tenant, now)) continue;
        census.active++;
        census.guaranteed += tenant->ask.guarantee;
        census.open += tenant->ask.guarantee == 0;
        census.fixed += tenant->ask.policy == POLICY_FIXED;
    }
    return census;
}

unsigned shown_active(const struct schedule *schedule, uint64_t now) { return count(schedule, now).active; }

uint64_t shown_budget(const struct schedule *schedule, uint64_t now) {
    struct census census = count(schedule, now);
    return allowance_budget(census.active, census.fixed > 0);
}

uint32_t shown_new_number(struct schedule *schedule) {
    schedule->numbers += schedule->numbers == UINT32_MAX ? 2 : 1;
    return schedule->numbers;
}

void shown_turn(struct schedule *schedule, int client, uint32_t turn, uint64_t budget_ns, uint64_t depth_ns) {
    struct arbitration_page *page = &schedule->clients[client].page;
    page->turn = turn;
    page->budget_ns = budget_ns;
    page->depth_ns = depth_ns;
    clients_mark(schedule, client);
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
        tenant->is_contended ? allowance_fallback(&tenant->ask, census->guaranteed, census->open) : FULL_CORES;
    if (tenant->is_contended && !has_turn) page->turn = 0;
    clients_mark(schedule, client);
}

/* It has the card to itself again: who waits is let go, and nobody is charged. */
static void release(struct schedule *schedule, int place, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[place];
    if (schedule->turn.number && schedule->turn.tenant == place) holding_end(schedule, now, now);
    while (tenant->first != SCHEDULE_NONE) {
        int32_t client = tenant->first;
        clients_wait_no_more(schedule, client);
        shown_turn(schedule, client, shown_new_number(schedule), UINT64_MAX, UINT64_MAX);
    }
}

void shown_refresh(struct schedule *schedule, uint64_t now) {
    struct census census = count(schedule, now);
    schedule->is_stale = false;
    schedule->shown_active = census.active;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        struct tenant *tenant = &schedule->tenants[i];
        if (!tenant->is_taken || !tenant->clients) continue;
        tenant->is_contended = is_contended(schedule, tenant, census.active, now);
        if (!tenant->is_contended) release(schedule, i, now);
    }
    for (int32_t i = 0; i < schedule->clients_high; i++)
        if (schedule->clients[i].is_taken) show(schedule, i, &census);
}
