#include "parts.h"

bool clients_is_one(const struct schedule *schedule, int client) {
    return client >= 0 && client < schedule->clients_high && schedule->clients[client].is_taken;
}

void clients_mark(struct schedule *schedule, int client) {
    struct client *one = &schedule->clients[client];
    if (one->is_changed) return;
    one->is_changed = true;
    schedule->changed[schedule->changed_count++] = client;
}

int schedule_next_changed(struct schedule *schedule) {
    while (schedule->changed_count > 0) {
        int client = schedule->changed[--schedule->changed_count];
        schedule->clients[client].is_changed = false;
        if (schedule->clients[client].is_taken) return client;
    }
    return SCHEDULE_NONE;
}

static int32_t take_place(struct schedule *schedule) {
    int32_t place = schedule->free_client;
    if (place != SCHEDULE_NONE) {
        schedule->free_client = schedule->clients[place].next;
        return place;
    }
    return schedule->clients_high < SCHEDULE_CLIENTS ? schedule->clients_high++ : SCHEDULE_NONE;
}

int schedule_join(struct schedule *schedule, int tenant) {
    int32_t place = take_place(schedule);
    if (place == SCHEDULE_NONE) return SCHEDULE_NONE;
    struct client *client = &schedule->clients[place];
    *client = (struct client){.is_taken = true, .is_changed = client->is_changed, .tenant = tenant, .next = -1};
    if (schedule->tenants[tenant].clients++ == 0) schedule->connected++;
    clients_mark(schedule, place);
    schedule->is_stale = true;
    return place;
}

void schedule_leave(struct schedule *schedule, int client, uint64_t now) {
    struct client *gone = &schedule->clients[client];
    holding_count(schedule, now);
    if (schedule->turn.number && schedule->turn.client == client) holding_end(schedule, now, now);
    clients_wait_no_more(schedule, client);
    if (--schedule->tenants[gone->tenant].clients == 0) schedule->connected--;
    gone->is_taken = false;
    gone->next = schedule->free_client;
    schedule->free_client = client;
    schedule->is_stale = true;
}

void clients_wait(struct schedule *schedule, int client, uint64_t now) {
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

void clients_wait_no_more(struct schedule *schedule, int client) {
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
    if (clients_is_away(schedule, tenant)) tenant_leave(tenant, schedule->pace);
}

bool clients_is_away(const struct schedule *schedule, const struct tenant *tenant) {
    bool has_turn = schedule->turn.number && &schedule->tenants[schedule->turn.tenant] == tenant;
    return !tenant->waits_since && !has_turn;
}

bool clients_others_wait(const struct schedule *schedule, int tenant) {
    for (int32_t i = 0; schedule->waiting && i < schedule->tenants_high; i++)
        if (i != tenant && schedule->tenants[i].is_taken && schedule->tenants[i].waits_since) return true;
    return false;
}
