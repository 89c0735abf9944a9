#include "schedule.h"

#include <stdlib.h>

#include "clients.h"
#include "common/arithmetic.h"
#include "contention.h"
#include "current_turn.h"
#include "expected_arrivals.h"
#include "overrun_budget.h"
#include "schedule_state.h"
#include "tenant.h"
#include "watermark.h"

/* What is left of a turn that its client is done with is no longer, whatever it says. */
#define REST_MOST (250 * NS_PER_MS)

struct schedule *schedule_open(unsigned high, unsigned low) {
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule) return NULL;
    schedule->watermark = watermark_new(high, low);
    schedule->overrun_budget = overrun_budget_new(0);
    schedule->turn = (struct current_turn){.tenant = SCHEDULE_NONE, .client = SCHEDULE_NONE};
    schedule->urgent = schedule->last = SCHEDULE_NONE;
    schedule->free_client = SCHEDULE_NONE;
    return schedule;
}

void schedule_close(struct schedule *schedule) { free(schedule); }

void schedule_set_watermark(struct schedule *schedule, unsigned high, unsigned low) {
    schedule->watermark.high = high;
    schedule->watermark.low = low;
}

static int free_place(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (!schedule->tenants[i].is_taken) return i;
    return schedule->tenants_high < SCHEDULE_TENANTS ? schedule->tenants_high++ : SCHEDULE_NONE;
}

int schedule_add(struct schedule *schedule, const struct demand *demand, uint64_t now) {
    int place = free_place(schedule);
    if (place == SCHEDULE_NONE) return SCHEDULE_NONE;
    schedule->tenants[place] = tenant_new(demand, now);
    schedule->tenants[place].virtual_time = schedule->tenants[place].virtual_time_at_leave = schedule->virtual_time;
    return place;
}

void schedule_change(struct schedule *schedule, int tenant, const struct demand *demand, uint64_t now) {
    struct tenant *changed = &schedule->tenants[tenant];
    if (demand_is_same(&changed->demand, demand)) return;
    current_turn_account(schedule, now);
    tenant_refill(changed, now);
    changed->demand = *demand;
    changed->virtual_time = changed->virtual_time_at_leave =
        schedule->virtual_time; /* what it held was counted by another weight */
    schedule->is_stale = true;
}

void schedule_remove(struct schedule *schedule, int tenant) { schedule->tenants[tenant].is_taken = false; }

bool schedule_is_empty(const struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (schedule->tenants[i].is_taken) return false;
    return true;
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
    clients_mark_changed(schedule, place);
    schedule->is_stale = true;
    return place;
}

void schedule_leave(struct schedule *schedule, int client, uint64_t now) {
    struct client *gone = &schedule->clients[client];
    current_turn_account(schedule, now);
    if (schedule->turn.number && schedule->turn.client == client) current_turn_end(schedule, now, now);
    clients_dequeue(schedule, client);
    if (--schedule->tenants[gone->tenant].clients == 0) schedule->connected--;
    gone->is_taken = false;
    gone->next = schedule->free_client;
    schedule->free_client = client;
    schedule->is_stale = true;
}

/* It is there from now on, which those who have the card to themselves must be told. */
static void see(struct schedule *schedule, struct tenant *tenant, uint64_t now) {
    bool was_active = tenant_is_active(tenant, now);
    tenant->seen_at = now;
    if (!was_active) schedule->is_stale = true;
    if (schedule->is_stale) contention_refresh(schedule, now);
}

/* Who has the turn, and whom its page tells so, needs none. */
void schedule_want(struct schedule *schedule, int client, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[schedule->clients[client].tenant];
    bool has_turn = schedule->turn.number && schedule->turn.client == client && schedule->turn.ends_at == 0;
    current_turn_account(schedule, now);
    see(schedule, tenant, now);
    if (!tenant->is_contended) {
        clients_show_turn(schedule, client, clients_new_turn_number(schedule), UINT64_MAX, UINT64_MAX);
        return;
    }
    if (has_turn) {
        expected_arrivals_conclude(schedule, true, now);
        return;
    }
    if (clients_is_tenant_idle(schedule, tenant)) {
        tenant_return(tenant, schedule->virtual_time);
        tenant_note_arrival(tenant, client, now);
    }
    clients_enqueue(schedule, client, now);
    current_turn_note_waiter(schedule, now);
}

void schedule_done(struct schedule *schedule, int client, uint32_t number, uint64_t rest, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    if (schedule->clients[client].page.turn == number) clients_show_turn(schedule, client, 0, 0, 0);
    if (!turn->number || turn->number != number || turn->client != client) return;
    uint64_t ends_at = max_u64(now + min_u64(rest, REST_MOST), turn->began);
    if (turn->ends_at && turn->ends_at <= ends_at) return;
    current_turn_account(schedule, now);
    current_turn_note_done(schedule, ends_at, now);
}

bool schedule_is_watched(const struct schedule *schedule) { return schedule->connected > 1 || schedule->waiting; }

const struct arbitration_page *schedule_page(const struct schedule *schedule, int client) {
    return &schedule->clients[client].page;
}

uint64_t schedule_held_ns(const struct schedule *schedule, int tenant) { return schedule->tenants[tenant].held_ns; }
