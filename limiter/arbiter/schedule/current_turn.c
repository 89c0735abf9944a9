#include "arbiter/schedule/current_turn.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/group_turn.h"
#include "arbiter/schedule/next_turn.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/overrun_budget.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/tenant/turn_allowance.h"
#include "arbiter/watermark/watermark.h"
#include "common/arithmetic.h"

/* How long the holder has to answer a request to yield once its overrun budget is used up. */
#define YIELD_RESPONSE_TIME NS_PER_MS

/* How long a job has, from the request to yield on, to end its launches on all of its cards at the same point of the
 * program, and for their work to drain: two steps of a training job. */
#define JOB_END_MAX (35 * NS_PER_MS)

/* On a machine with other load the arbiter may be woken up to this much late without that counting as its own delay. */
#define LATENESS_MAX NS_PER_MS

/* The sum of the weights of the tenants that wait or have the turn. */
static uint32_t active_weight(const struct schedule *schedule) {
    uint32_t sum = 0;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (tenant->is_taken && (tenant->waiting_since || i == schedule->turn.tenant)) sum += tenant->demand.weight;
    }
    return sum;
}

static void charge(struct schedule *schedule, uint64_t until) {
    struct tenant *tenant = &schedule->tenants[schedule->turn.tenant];
    uint64_t ns = until - schedule->charged_until;
    tenant_refill(tenant, until);
    tenant_charge(tenant, ns, clients_others_wait(schedule, schedule->turn.tenant));
    watermark_charge(&schedule->watermark, ns, tenant->demand.policy == POLICY_BEST_EFFORT);
    schedule->virtual_time += tenant_virtual_time(ns, active_weight(schedule));
    tenant->last_active_at = until;
}

/* If the arbiter ran late, the time since it should have run is charged to no tenant, because it could not end the turn
 * then. */
static uint64_t charge_end(const struct schedule *schedule, uint64_t now) {
    bool is_late =
        schedule->next_run_at != 0 && schedule->next_run_at < now && now - schedule->next_run_at > LATENESS_MAX;
    return is_late ? max_u64(schedule->next_run_at, schedule->charged_until) : now;
}

void current_turn_account(struct schedule *schedule, uint64_t now) {
    if (now <= schedule->charged_until) return;
    uint64_t passed = now - schedule->charged_until;
    if (schedule->turn.number || schedule->waiting_clients) schedule->wanted_ns += passed;
    if (schedule->waiting_clients) schedule->contested_ns += passed;
    if (schedule->turn.number) charge(schedule, charge_end(schedule, now));
    schedule->charged_until = now;
}

/* A turn without a budget goes on until the arbiter asks it back, early enough that the work in flight ends within the
 * turn's time. The depth bounds that work, and the tenant's last turns show how much it usually is. A host-bound
 * program has hardly any: if its turns were shorter by the depth, its neighbour would have three handovers for one. */
static uint64_t ask_back_at(const struct schedule *schedule) {
    const struct current_turn *turn = &schedule->turn;
    uint64_t in_flight = min_u64(turn->depth, schedule->tenants[turn->tenant].asked_back_ns);
    return turn->began_at + turn->budget - in_flight;
}

/* In the middle of its last step: the turn ends with that one, because its program launches the next one only after it
 * has waited. Asked for at another time, now and then the turn would have a step more or less. */
static uint64_t ask_in_last_step_at(const struct schedule *schedule, uint64_t step) {
    const struct current_turn *turn = &schedule->turn;
    uint64_t steps = turn_allowance_steps(step, turn->budget);
    return schedule->clients[turn->client].page.free_at + steps * step - step / 2;
}

/* A job's thread launches for one card after the other: with less in flight, cards would be idle while it waits at
 * another one's gate. */
static uint64_t depth_of(const struct schedule *schedule, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    if (schedule->tenants[turn->tenant].is_of_job) return turn_allowance_depth(false, false, turn->budget);
    return turn_allowance_depth(next_turn_has_latency_sensitive_rival(schedule, turn->tenant, now),
                                next_turn_is_preemptible(schedule, turn->tenant, now), turn->budget);
}

static void publish(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    bool is_of_job = schedule->tenants[turn->tenant].is_of_job;
    uint64_t step = turn->end_by ? 0 : clients_step(schedule, turn->client);
    turn->is_of_steps = step != 0;
    bool is_bounded = turn->end_by || (!is_of_job && !step && !next_turn_is_unbounded(schedule, turn->tenant));
    turn->depth = depth_of(schedule, now);
    turn->yield_at = is_bounded ? turn->began_at + turn->budget : ask_back_at(schedule);
    if (step) turn->yield_at = ask_in_last_step_at(schedule, step);
    clients_publish_turn(schedule, turn->client, turn->number, is_bounded ? turn->budget : UINT64_MAX, turn->depth);
}

/* An expected arrival does not bound it: parts have no budget that could end in time. */
static void publish_to_group(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    turn->end_by = 0;
    turn->depth = depth_of(schedule, now);
    turn->yield_at = ask_back_at(schedule);
    group_turn_give(schedule, turn->client);
    group_turn_give_waiting(schedule);
}

/* A fixed share keeps to its guarantee. A burst tenant beyond it owes what it takes while others wait, and these keep
 * what they earn meanwhile. */
static bool has_right_to_finish(const struct tenant *tenant) {
    return tenant->demand.guarantee && (tenant->credit_ns > 0 || tenant->demand.policy == POLICY_BURST);
}

static void charge_group_handover(struct schedule *schedule, int32_t next) {
    if (!clients_is_connected(schedule, schedule->last_client)) return;
    int32_t last = schedule->clients[schedule->last_client].tenant;
    if (last != next && schedule->tenants[last].demand.is_group)
        tenant_charge_group_handover(&schedule->tenants[last], &schedule->tenants[next]);
}

void current_turn_begin(struct schedule *schedule, int client, uint64_t budget, uint64_t end_by, uint64_t now) {
    int32_t tenant_index = schedule->clients[client].tenant;
    struct tenant *tenant = &schedule->tenants[tenant_index];
    current_turn_account(schedule, now);
    if (schedule->preempting_tenant == tenant_index)
        tenant_charge_handovers(&schedule->tenants[schedule->preempted_tenant], tenant);
    charge_group_handover(schedule, tenant_index);
    schedule->preempting_tenant = SCHEDULE_NONE;
    schedule->turn = (struct current_turn){.number = clients_new_turn_number(schedule),
                                           .tenant = tenant_index,
                                           .client = client,
                                           .began_at = schedule->charged_until,
                                           .begin_by = schedule->charged_until + CURRENT_TURN_TIME_TO_BEGIN,
                                           .budget = budget,
                                           .end_by = end_by,
                                           .may_finish = has_right_to_finish(tenant)};
    clients_dequeue(schedule, client); /* with the turn, the tenant does not count as idle, and keeps its credit */
    if (tenant->waiting_since) tenant->waiting_since = now;
    schedule->clients[client].page.end_by = end_by;
    schedule->clients[client].page.free_at =
        schedule->turn.began_at + (schedule->last_client == client ? 0 : TENANT_HANDOVER);
    schedule->last_client = client;
    (tenant->demand.is_group ? publish_to_group : publish)(schedule, now);
    current_turn_note_waiter(schedule, now);
}

void current_turn_note_waiter(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    if (!turn->number) return;
    if (!schedule->waiting_clients) turn->contested_since = 0;
    if (!schedule->waiting_clients || turn->contested_since) return;
    turn->contested_since = max_u64(now, turn->began_at);
    turn->check_idle_at = max_u64(now, turn->begin_by);
}

/* Beside a long kernel, the card's time slices would lengthen every measured time, and both tenants would be charged
 * for the other's work. So the kernel runs to its end if its client has announced that end in time, or its region says
 * that the card is busy: the debt is repaid before the next one. A latency-sensitive tenant does not wait for that. */
static bool finishes(const struct schedule *schedule) {
    const struct current_turn *turn = &schedule->turn;
    bool is_announced = turn->drains_at && turn->done_at <= turn->overdue_at + YIELD_RESPONSE_TIME;
    return turn->may_finish && (is_announced || turn->is_busy) && !next_turn_has_latency_sensitive_waiter(schedule);
}

uint64_t current_turn_deadline(const struct schedule *schedule) {
    const struct current_turn *turn = &schedule->turn;
    bool is_bounded_by_overrun = schedule->waiting_clients && turn->overdue_at;
    if (!is_bounded_by_overrun) return UINT64_MAX;
    if (finishes(schedule)) return turn->overdue_at + TENANT_LONG_KERNEL;
    uint64_t of_tenant = schedule->tenants[turn->tenant].overrun_budget.left_ns,
             of_all = schedule->overrun_budget.left_ns;
    return turn->overdue_at + YIELD_RESPONSE_TIME + min_u64(of_tenant, of_all);
}

/* The work that is in flight at this moment is no overrun. */
void current_turn_ask_to_yield(struct schedule *schedule, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    turn->asked_back_at = now;
    turn->check_idle_at = min_u64(turn->check_idle_at, now + CURRENT_TURN_CHECK_MIN);
    uint64_t in_flight = turn->is_of_job ? JOB_END_MAX : turn_allowance_depth(false, false, turn->budget);
    turn->overdue_at = max_u64(turn->began_at + turn->budget, now + in_flight);
    if (group_turn_is_current(schedule)) {
        group_turn_ask_to_yield(schedule);
        return;
    }
    schedule->clients[turn->client].page.yield_turn = turn->number;
    clients_mark_changed(schedule, turn->client);
}

void current_turn_note_done(struct schedule *schedule, uint64_t drains_at, bool is_awaited, uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    turn->drains_at = drains_at;
    turn->is_drain_awaited = is_awaited;
    if (!turn->done_at) turn->done_at = now;
    if (!turn->overdue_at) turn->overdue_at = max_u64(turn->began_at + turn->budget, now);
}

static uint64_t busy_since(uint64_t since, uint64_t busy_until) { return busy_until > since ? busy_until - since : 0; }

/* Learns from a turn that its client ended. The turn was short if it was short from its beginning to its end. It was
 * long if it went on for a long time after another client had begun to wait; the time before that does not count,
 * because nobody wanted the card then. From a turn in which nothing was launched, nothing is learnt. */
static void learn_own_end(struct tenant *tenant, const struct current_turn *turn, uint64_t busy_until) {
    uint64_t short_max = min_u64(TENANT_SHORT_TURN, turn_allowance_own_budget(&tenant->demand, turn->budget) / 2);
    uint64_t used = busy_since(turn->began_at, busy_until);
    if (used && used < short_max)
        tenant_learn_turn_length(tenant, true);
    else if (busy_since(turn->contested_since, busy_until) >= short_max)
        tenant_learn_turn_length(tenant, false);
}

/* Learns from a turn for whose end no client waited: only if it used its budget without a pause, it was long. */
static void learn_uncontested(struct tenant *tenant, const struct current_turn *turn, uint64_t ended) {
    uint64_t length = busy_since(turn->began_at, ended);
    bool used_budget = turn->done_at && length >= turn->budget && length < turn->budget + TENANT_SHORT_TURN;
    if (used_budget) tenant_learn_turn_length(tenant, false);
}

/* Learns from the length of a turn. Of turns that the arbiter ended only the long ones count, because the others might
 * have been longer. */
static void learn_turn_length(struct tenant *tenant, const struct current_turn *turn, uint64_t ended,
                              uint64_t idle_since) {
    bool is_contested = turn->contested_since && (!turn->done_at || turn->contested_since < turn->done_at);
    bool has_ended_by_itself = !(turn->asked_back_at || turn->end_by) || idle_since < ended;
    if (!is_contested)
        learn_uncontested(tenant, turn, ended);
    else if (has_ended_by_itself)
        learn_own_end(tenant, turn, min_u64(idle_since, ended));
    else if (ended > turn->began_at + TENANT_SHORT_TURN)
        tenant_learn_turn_length(tenant, false);
}

/* A turn that was asked back may have gone on for long before, now and then with work. */
static bool was_used_up(const struct current_turn *turn, uint64_t ended) {
    uint64_t since = turn->asked_back_at ? turn->contested_since : turn->began_at;
    return turn->done_at && busy_since(since, ended) >= turn->budget;
}

static bool has_ended_idle(const struct current_turn *turn, uint64_t ended, uint64_t idle_since) {
    bool was_short = turn->done_at && !turn->asked_back_at && busy_since(turn->began_at, ended) < TENANT_SHORT_TURN;
    return was_short || (!turn->done_at && idle_since < ended && idle_since > turn->began_at);
}

static void note_ending(struct tenant *tenant, const struct current_turn *turn, uint64_t ended, uint64_t idle_since) {
    if (was_used_up(turn, ended))
        tenant->last_ending = TURN_USED_UP;
    else if (has_ended_idle(turn, ended, idle_since))
        tenant->last_ending = TURN_ENDED_IDLE;
}

static void charge_overrun(struct schedule *schedule, const struct current_turn *turn, uint64_t ended) {
    if (!turn->contested_since || !turn->overdue_at || ended <= turn->overdue_at || finishes(schedule)) return;
    overrun_budget_refill(&schedule->overrun_budget, ended);
    overrun_budget_use(&schedule->overrun_budget, ended - turn->overdue_at);
    overrun_budget_use(&schedule->tenants[turn->tenant].overrun_budget, ended - turn->overdue_at);
}

void current_turn_end(struct schedule *schedule, uint64_t ended, uint64_t idle_since) {
    struct current_turn *turn = &schedule->turn;
    struct tenant *tenant = &schedule->tenants[turn->tenant];
    current_turn_account(schedule, ended);
    learn_turn_length(tenant, turn, ended, idle_since);
    note_ending(tenant, turn, ended, idle_since);
    if (turn->asked_back_at) tenant_note_asked_back(tenant, saturating_sub(ended, turn->asked_back_at));
    turn_counts_note_end(&tenant->counts, turn->asked_back_at, ended);
    charge_overrun(schedule, turn, ended);
    if (group_turn_is_current(schedule))
        group_turn_take_back(schedule);
    else if (schedule->clients[turn->client].page.turn == turn->number)
        clients_publish_turn(schedule, turn->client, 0, 0, 0);
    schedule->last_turn_ns = ended > turn->began_at ? ended - turn->began_at : 0;
    bool was_used = idle_since > turn->began_at;
    *turn = (struct current_turn){.tenant = SCHEDULE_NONE, .client = SCHEDULE_NONE};
    if (!clients_is_tenant_idle(schedule, tenant)) return;
    tenant_leave(tenant, schedule->virtual_time);
    if (was_used) tenant_note_left(tenant, idle_since < ended ? idle_since : ended);
}
