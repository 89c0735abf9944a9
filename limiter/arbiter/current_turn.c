#include "current_turn.h"

#include "clients.h"
#include "common/arithmetic.h"
#include "next_turn.h"
#include "overrun_budget.h"
#include "schedule_state.h"
#include "tenant.h"
#include "turn_allowance.h"
#include "watermark.h"

/* For what lies between the arbiter's word and its client's, where it has no patience left. */
#define TIME_TO_ANSWER NS_PER_MS

/* A machine that others use too may let us run so much later than we asked to. */
#define LATE NS_PER_MS

/* Of all who wait or have the turn. */
static uint32_t weights(const struct schedule *schedule) {
    uint32_t sum = 0;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (tenant->is_taken && (tenant->waits_since || i == schedule->turn.tenant)) sum += tenant->demand.weight;
    }
    return sum;
}

static void charge(struct schedule *schedule, uint64_t until) {
    struct tenant *tenant = &schedule->tenants[schedule->turn.tenant];
    uint64_t ns = until - schedule->counted_until;
    tenant_refill(tenant, until);
    tenant_charge(tenant, ns, clients_others_wait(schedule, schedule->turn.tenant));
    watermark_charge(&schedule->watermark, ns, tenant->demand.policy == POLICY_BEST_EFFORT);
    schedule->virtual_time += tenant_virtual_time(ns, weights(schedule));
    tenant->seen_at = until;
}

/* Nobody is charged for the time in which we were late ourselves: what was due then could not be done. */
static uint64_t charged_until(const struct schedule *schedule, uint64_t now) {
    bool is_late = schedule->due != 0 && schedule->due < now && now - schedule->due > LATE;
    return is_late ? max_u64(schedule->due, schedule->counted_until) : now;
}

void current_turn_account(struct schedule *schedule, uint64_t now) {
    if (now <= schedule->counted_until) return;
    if (schedule->turn.number) charge(schedule, charged_until(schedule, now));
    schedule->counted_until = now;
}

/* A turn that only those of lower rank wait for goes on until the clock says that one of them is due. */
static void show(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    bool is_bounded = turn->until || !next_turn_needs_no_end(schedule, turn->tenant);
    bool is_hurried = next_turn_is_urgent_for_others(schedule, turn->tenant, now);
    uint64_t depth = turn_allowance_depth(is_hurried, turn->budget);
    turn->yields_at = turn->began + turn->budget - (is_bounded ? 0 : depth);
    clients_show_turn(schedule, turn->client, turn->number, is_bounded ? turn->budget : UINT64_MAX, depth);
}

void current_turn_begin(struct schedule *schedule, int client, uint64_t budget, uint64_t until, uint64_t now) {
    int32_t place = schedule->clients[client].tenant;
    struct tenant *tenant = &schedule->tenants[place];
    current_turn_account(schedule, now);
    clients_dequeue(schedule, client);
    if (tenant->waits_since) tenant->waits_since = now;
    if (schedule->urgent == place) tenant_charge_handovers(&schedule->tenants[schedule->interrupted], tenant);
    schedule->urgent = SCHEDULE_NONE;
    schedule->turn = (struct current_turn){.number = clients_new_turn_number(schedule),
                                           .tenant = place,
                                           .client = client,
                                           .began = schedule->counted_until,
                                           .begins_by = schedule->counted_until + CURRENT_TURN_TIME_TO_BEGIN,
                                           .budget = budget,
                                           .until = until};
    schedule->clients[client].page.until = until;
    schedule->clients[client].page.free_at = schedule->turn.began + (schedule->last == client ? 0 : TENANT_HANDOVER);
    schedule->last = client;
    show(schedule, now);
    current_turn_note_waiter(schedule, now);
}

void current_turn_note_waiter(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    if (!turn->number) return;
    if (!schedule->waiting) turn->contested = 0;
    if (!schedule->waiting || turn->contested) return;
    turn->contested = max_u64(now, turn->began);
    turn->look_at = max_u64(now, turn->begins_by);
}

uint64_t current_turn_deadline(const struct schedule *schedule) {
    const struct current_turn *turn = &schedule->turn;
    bool is_pressed = schedule->waiting && turn->overdue_at;
    if (!is_pressed) return UINT64_MAX;
    uint64_t own = schedule->tenants[turn->tenant].overrun_budget.left, all = schedule->overrun_budget.left;
    return turn->overdue_at + TIME_TO_ANSWER + (own < all ? own : all);
}

/* What is in flight when it is asked may pass. */
void current_turn_ask_to_yield(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    turn->is_asked_to_yield = true;
    turn->overdue_at = max_u64(turn->began + turn->budget, now + turn_allowance_depth(false, turn->budget));
    schedule->clients[turn->client].page.yield = turn->number;
    clients_mark_changed(schedule, turn->client);
}

void current_turn_note_done(struct schedule *schedule, uint64_t ends_at, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    turn->ends_at = ends_at;
    if (!turn->done_at) turn->done_at = now;
    if (!turn->overdue_at) turn->overdue_at = max_u64(turn->began + turn->budget, now);
}

/* A turn that was cut short by us says nothing about its tenant, unless it was a long one all the same; nor does one
 * that nobody waited for before it was done. */
static void judge(struct tenant *tenant, const struct current_turn *turn, uint64_t ended, uint64_t idle_since) {
    if (!turn->contested || (turn->done_at && turn->contested >= turn->done_at)) return;
    uint64_t busy_until = idle_since < ended ? idle_since : ended;
    uint64_t busy = busy_until > turn->contested ? busy_until - turn->contested : 0;
    bool is_by_itself = !(turn->is_asked_to_yield || turn->until) || idle_since < ended;
    if (is_by_itself)
        tenant_learn_turn_length(
            tenant, busy < TENANT_SHORT && 2 * busy < turn_allowance_own_budget(&tenant->demand, turn->budget));
    else if (ended > turn->began + TENANT_SHORT)
        tenant_learn_turn_length(tenant, false);
}

static void note_overrun(struct schedule *schedule, const struct current_turn *turn, uint64_t ended) {
    if (!turn->contested || !turn->overdue_at || ended <= turn->overdue_at) return;
    overrun_budget_refill(&schedule->overrun_budget, ended);
    overrun_budget_use(&schedule->overrun_budget, ended - turn->overdue_at);
    overrun_budget_use(&schedule->tenants[turn->tenant].overrun_budget, ended - turn->overdue_at);
}

void current_turn_end(struct schedule *schedule, uint64_t ended, uint64_t idle_since) {
    struct current_turn *turn = &schedule->turn;
    struct tenant *tenant = &schedule->tenants[turn->tenant];
    current_turn_account(schedule, ended);
    judge(tenant, turn, ended, idle_since);
    if (idle_since < ended)
        tenant->visit_ns = idle_since > tenant->arrivals.last ? idle_since - tenant->arrivals.last : 0;
    note_overrun(schedule, turn, ended);
    if (schedule->clients[turn->client].page.turn == turn->number) clients_show_turn(schedule, turn->client, 0, 0, 0);
    *turn = (struct current_turn){.tenant = SCHEDULE_NONE, .client = SCHEDULE_NONE};
    if (clients_is_tenant_idle(schedule, tenant)) tenant_leave(tenant, schedule->virtual_time);
}
