#include "arbiter/schedule/schedule.h"

#include <stdlib.h>

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/contention.h"
#include "arbiter/schedule/current_turn.h"
#include "arbiter/schedule/expected_arrivals.h"
#include "arbiter/schedule/group_turn.h"
#include "arbiter/schedule/job_turn.h"
#include "arbiter/schedule/joint_turns.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/overrun_budget.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/watermark/watermark.h"
#include "common/arithmetic.h"

/* How long the work of a turn is taken to last after DONE if the client says that it lasts longer than any kernel may
 * (TENANT_LONG_KERNEL). */
#define REST_MAX (250 * NS_PER_MS)

struct schedule *schedule_open(unsigned high, unsigned low) {
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule) return NULL;
    schedule->watermark = watermark_new(high, low);
    schedule->overrun_budget = overrun_budget_new(0);
    schedule->turn = (struct current_turn){.tenant = SCHEDULE_NONE, .client = SCHEDULE_NONE};
    schedule->preempting_tenant = schedule->last_client = schedule->called_tenant = SCHEDULE_NONE;
    schedule->free_client = SCHEDULE_NONE;
    return schedule;
}

void schedule_close(struct schedule *schedule) { free(schedule); }

void schedule_set_watermark(struct schedule *schedule, unsigned high, unsigned low) {
    schedule->watermark.high = high;
    schedule->watermark.low = low;
}

static int take_tenant_index(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (!schedule->tenants[i].is_taken) return i;
    return schedule->tenants_high < SCHEDULE_TENANTS ? schedule->tenants_high++ : SCHEDULE_NONE;
}

int schedule_add(struct schedule *schedule, const struct demand *demand, uint64_t now) {
    int index = take_tenant_index(schedule);
    if (index == SCHEDULE_NONE) return SCHEDULE_NONE;
    schedule->tenants[index] = tenant_new(demand, now);
    schedule->tenants[index].virtual_time = schedule->tenants[index].virtual_time_at_leave = schedule->virtual_time;
    return index;
}

void schedule_set_demand(struct schedule *schedule, int tenant, const struct demand *demand, uint64_t now) {
    struct tenant *changed = &schedule->tenants[tenant];
    if (demand_is_equal(&changed->demand, demand)) return;
    current_turn_account(schedule, now);
    tenant_refill(changed, now);
    changed->demand = *demand;
    changed->virtual_time = changed->virtual_time_at_leave = schedule->virtual_time;
    joint_turns_note_newcomer(schedule, tenant, now);
    schedule->is_contention_stale = true;
}

void schedule_remove(struct schedule *schedule, int tenant) {
    job_turn_pace(schedule, tenant, false);
    schedule->tenants[tenant].is_taken = false;
    if (schedule->called_tenant == tenant) schedule->called_tenant = SCHEDULE_NONE;
}

bool schedule_is_empty(const struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (schedule->tenants[i].is_taken) return false;
    return true;
}

static int32_t take_client_index(struct schedule *schedule) {
    int32_t index = schedule->free_client;
    if (index != SCHEDULE_NONE) {
        schedule->free_client = schedule->clients[index].next;
        return index;
    }
    return schedule->clients_high < SCHEDULE_CLIENTS ? schedule->clients_high++ : SCHEDULE_NONE;
}

int schedule_join(struct schedule *schedule, int tenant, bool joins) {
    int32_t index = take_client_index(schedule);
    if (index == SCHEDULE_NONE) return SCHEDULE_NONE;
    struct client *client = &schedule->clients[index];
    *client = (struct client){
        .is_taken = true, .joins = joins, .is_changed = client->is_changed, .tenant = tenant, .next = -1};
    if (schedule->tenants[tenant].clients++ == 0) schedule->connected_tenants++;
    clients_mark_changed(schedule, index);
    schedule->is_contention_stale = true;
    return index;
}

/* A part of a group's turn has changed: the turn drains when no client holds a part any more, with the last of them. */
static void conclude_group_turn(struct schedule *schedule, uint64_t now) {
    struct group_drain drain = group_turn_drain(schedule);
    if (drain.client == SCHEDULE_NONE) {
        current_turn_end(schedule, now, now);
        return;
    }
    schedule->turn.client = drain.client;
    if (!drain.is_held) current_turn_note_done(schedule, drain.drains_at, drain.is_awaited, now);
}

void schedule_leave(struct schedule *schedule, int client, uint64_t now) {
    struct client *leaving = &schedule->clients[client];
    current_turn_account(schedule, now);
    if (group_turn_leave(schedule, client))
        conclude_group_turn(schedule, now);
    else if (schedule->turn.number && schedule->turn.client == client)
        current_turn_end(schedule, now, now);
    clients_dequeue(schedule, client);
    if (--schedule->tenants[leaving->tenant].clients == 0) schedule->connected_tenants--;
    leaving->is_taken = false;
    leaving->next = schedule->free_client;
    schedule->free_client = client;
    schedule->is_contention_stale = true;
}

/* A tenant that becomes active makes the card contended for the tenants that had it to themselves, and they have to be
 * told before this one launches. */
static void note_activity(struct schedule *schedule, int tenant_index, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[tenant_index];
    bool was_active = tenant_is_active(tenant, now);
    tenant_note_active(tenant, now);
    if (!was_active) {
        joint_turns_note_newcomer(schedule, tenant_index, now);
        schedule->is_contention_stale = true;
    }
    if (schedule->is_contention_stale) contention_refresh(schedule, now);
}

/* A client of a tenant that has the card to itself gets a turn without limits. A client that has the turn needs no
 * other; its WANT ends the wait of a reservation. */
void schedule_want(struct schedule *schedule, int client, uint64_t suitable_turn, uint64_t step, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[schedule->clients[client].tenant];
    bool has_turn = schedule->turn.number && schedule->turn.client == client && schedule->turn.drains_at == 0;
    current_turn_account(schedule, now);
    note_activity(schedule, schedule->clients[client].tenant, now);
    tenant->suitable_turn_ns = suitable_turn;
    schedule->clients[client].step_ns = step;
    if (!tenant->is_contended) {
        clients_publish_turn(schedule, client, clients_new_turn_number(schedule), UINT64_MAX, UINT64_MAX);
        return;
    }
    if (joint_turns_are_on(schedule)) {
        joint_turns_grant(schedule, client, now);
        return;
    }
    if (group_turn_admits(schedule, client)) {
        group_turn_give(schedule, client);
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

/* Counts the first DONE of a turn, or of a client's part of it. */
static void count_done(struct schedule *schedule, uint64_t drains_at_before, uint64_t rest) {
    if (!drains_at_before) turn_counts_note_done(&schedule->tenants[schedule->turn.tenant].counts, rest);
}

void schedule_done(struct schedule *schedule, int client, uint32_t number, uint64_t rest, bool is_awaited,
                   uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    if (schedule->clients[client].page.turn == number) clients_publish_turn(schedule, client, 0, 0, 0);
    bool is_credible = rest <= TENANT_LONG_KERNEL;
    uint64_t drains_at = max_u64(now + (is_credible ? rest : REST_MAX), turn->began_at);
    if (group_turn_is_current(schedule)) {
        current_turn_account(schedule, now);
        uint64_t before = schedule->clients[client].part.drains_at;
        if (!group_turn_note_done(schedule, client, number, drains_at, is_awaited)) return;
        count_done(schedule, before, rest);
        conclude_group_turn(schedule, now);
        return;
    }
    if (!turn->number || turn->number != number || turn->client != client) return;
    if (turn->drains_at && turn->drains_at <= drains_at && !turn->is_drain_awaited) return;
    turn->may_finish &= is_credible;
    count_done(schedule, turn->drains_at, rest);
    current_turn_account(schedule, now);
    current_turn_note_done(schedule, drains_at, is_awaited && !turn->drains_at, now);
}

bool schedule_needs_heartbeat(const struct schedule *schedule) {
    return schedule->connected_tenants > 1 || schedule->waiting_clients || schedule->paced_tenants;
}

const struct arbitration_page *schedule_page(const struct schedule *schedule, int client) {
    return &schedule->clients[client].page;
}

uint64_t schedule_held_ns(const struct schedule *schedule, int tenant) { return schedule->tenants[tenant].held_ns; }
