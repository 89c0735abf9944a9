#include "clients.h"

#include "schedule_state.h"
#include "tenant.h"

bool clients_is_connected(const struct schedule *schedule, int client) {
    return client >= 0 && client < schedule->clients_high && schedule->clients[client].is_taken;
}

void clients_mark_changed(struct schedule *schedule, int client) {
    struct client *one = &schedule->clients[client];
    if (one->is_changed) return;
    one->is_changed = true;
    schedule->changed[schedule->changed_count++] = client;
}

int clients_next_changed(struct schedule *schedule) {
    while (schedule->changed_count > 0) {
        int client = schedule->changed[--schedule->changed_count];
        schedule->clients[client].is_changed = false;
        if (schedule->clients[client].is_taken) return client;
    }
    return SCHEDULE_NONE;
}

void clients_enqueue(struct schedule *schedule, int client, uint64_t now) {
    struct client *last = &schedule->clients[client];
    struct tenant *tenant = &schedule->tenants[last->tenant];
    if (last->is_waiting) return;
    last->is_waiting = true;
    last->next = -1;
    if (tenant->last == SCHEDULE_NONE)
        tenant->first = client;
    else
        schedule->clients[tenant->last].next = client;
    tenant->last = client;
    if (tenant->waits_since == 0) tenant->waits_since = now;
    schedule->waiting++;
}

static int32_t before(const struct schedule *schedule, const struct tenant *tenant, int client) {
    int32_t found = SCHEDULE_NONE;
    for (int32_t at = tenant->first; at != client; at = schedule->clients[at].next) found = at;
    return found;
}

void clients_dequeue(struct schedule *schedule, int client) {
    struct client *gone = &schedule->clients[client];
    struct tenant *tenant = &schedule->tenants[gone->tenant];
    if (!gone->is_waiting) return;
    int32_t former = before(schedule, tenant, client);
    if (former == SCHEDULE_NONE)
        tenant->first = gone->next;
    else
        schedule->clients[former].next = gone->next;
    if (tenant->last == client) tenant->last = former;
    if (tenant->first == SCHEDULE_NONE) tenant->waits_since = 0;
    gone->is_waiting = false;
    schedule->waiting--;
    if (clients_is_tenant_idle(schedule, tenant)) tenant_leave(tenant, schedule->virtual_time);
}

bool clients_is_tenant_idle(const struct schedule *schedule, const struct tenant *tenant) {
    bool has_turn = schedule->turn.number && &schedule->tenants[schedule->turn.tenant] == tenant;
    return !tenant->waits_since && !has_turn;
}

bool clients_others_wait(const struct schedule *schedule, int tenant) {
    for (int32_t i = 0; schedule->waiting && i < schedule->tenants_high; i++)
        if (i != tenant && schedule->tenants[i].is_taken && schedule->tenants[i].waits_since) return true;
    return false;
}

uint32_t clients_new_turn_number(struct schedule *schedule) {
    schedule->numbers += schedule->numbers == UINT32_MAX ? 2 : 1;
    return schedule->numbers;
}

void clients_show_turn(struct schedule *schedule, int client, uint32_t turn, uint64_t budget_ns, uint64_t depth_ns) {
    struct arbitration_page *page = &schedule->clients[client].page;
    page->turn = turn;
    page->budget_ns = budget_ns;
    page->depth_ns = depth_ns;
    clients_mark_changed(schedule, client);
}
