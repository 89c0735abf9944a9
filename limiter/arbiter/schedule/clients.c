#include "arbiter/schedule/clients.h"

#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/tenant.h"

/* The longest step for whose end a neighbour waits: as long as the longest turns. */
#define STEP_MAX (16 * NS_PER_MS)

bool clients_is_connected(const struct schedule *schedule, int client) {
    return client >= 0 && client < schedule->clients_high && schedule->clients[client].is_taken;
}

void clients_mark_changed(struct schedule *schedule, int client) {
    struct client *changed = &schedule->clients[client];
    if (changed->is_changed) return;
    changed->is_changed = true;
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
    struct client *added = &schedule->clients[client];
    struct tenant *tenant = &schedule->tenants[added->tenant];
    if (added->is_waiting) return;
    added->is_waiting = true;
    added->next = -1;
    if (tenant->last_waiting == SCHEDULE_NONE)
        tenant->first_waiting = client;
    else
        schedule->clients[tenant->last_waiting].next = client;
    tenant->last_waiting = client;
    if (tenant->waiting_since == 0) tenant->waiting_since = now;
    schedule->waiting_clients++;
}

static int32_t predecessor(const struct schedule *schedule, const struct tenant *tenant, int client) {
    int32_t previous = SCHEDULE_NONE;
    for (int32_t current = tenant->first_waiting; current != client; current = schedule->clients[current].next)
        previous = current;
    return previous;
}

void clients_dequeue(struct schedule *schedule, int client) {
    struct client *removed = &schedule->clients[client];
    struct tenant *tenant = &schedule->tenants[removed->tenant];
    if (!removed->is_waiting) return;
    int32_t previous = predecessor(schedule, tenant, client);
    if (previous == SCHEDULE_NONE)
        tenant->first_waiting = removed->next;
    else
        schedule->clients[previous].next = removed->next;
    if (tenant->last_waiting == client) tenant->last_waiting = previous;
    if (tenant->first_waiting == SCHEDULE_NONE) tenant->waiting_since = 0;
    removed->is_waiting = false;
    schedule->waiting_clients--;
    if (clients_is_tenant_idle(schedule, tenant)) tenant_leave(tenant, schedule->virtual_time);
}

bool clients_is_tenant_idle(const struct schedule *schedule, const struct tenant *tenant) {
    bool has_turn = schedule->turn.number && &schedule->tenants[schedule->turn.tenant] == tenant;
    return !tenant->waiting_since && !has_turn;
}

bool clients_others_wait(const struct schedule *schedule, int tenant) {
    for (int32_t i = 0; schedule->waiting_clients && i < schedule->tenants_high; i++)
        if (i != tenant && schedule->tenants[i].is_taken && schedule->tenants[i].waiting_since) return true;
    return false;
}

uint32_t clients_new_turn_number(struct schedule *schedule) {
    schedule->last_turn_number += schedule->last_turn_number == UINT32_MAX ? 2 : 1;
    return schedule->last_turn_number;
}

void clients_publish_turn(struct schedule *schedule, int client, uint32_t turn, uint64_t budget_ns, uint64_t depth_ns) {
    struct arbitration_page *page = &schedule->clients[client].page;
    page->turn = turn;
    page->joint = 0;
    page->budget_ns = budget_ns;
    page->depth_ns = depth_ns;
    clients_mark_changed(schedule, client);
}

/* A fixed share's client ends its turns itself, a best-effort tenant is preempted, a job's turns end on all of its
 * cards at the same moment, and a group's clients have steps of their own. */
uint64_t clients_step(const struct schedule *schedule, int client) {
    const struct client *waiting = &schedule->clients[client];
    const struct tenant *tenant = &schedule->tenants[waiting->tenant];
    bool has_steps = tenant->demand.policy == POLICY_BURST && !tenant->demand.is_group && !tenant->is_of_job;
    return has_steps && waiting->step_ns <= STEP_MAX ? waiting->step_ns : 0;
}
