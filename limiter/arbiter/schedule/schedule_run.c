#include "arbiter/schedule/schedule_run.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/contention.h"
#include "arbiter/schedule/current_turn.h"
#include "arbiter/schedule/expected_arrivals.h"
#include "arbiter/schedule/group_turn.h"
#include "arbiter/schedule/next_turn.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/overrun_budget.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/watermark/watermark.h"
#include "common/arithmetic.h"

/* A turn is revoked if other clients wait and the card has been idle for this long. */
#define IDLE_TIMEOUT (NS_PER_MS / 10)

/* A tenant whose pauses are mostly shorter than two handovers keeps its turn for as long as these take, unless it is
 * asked to yield: then there are handovers in any case. */
#define IDLE_TIMEOUT_RETURNING (2 * TENANT_HANDOVER)

/* A periodic client whose visit has lasted about as long as the one before is probably done, so its idle turn is
 * revoked sooner. */
#define IDLE_TIMEOUT_AFTER_VISIT (NS_PER_MS / 50)

/* Lead time of a grant to a fixed share: its launches are never queued ahead of the turn, so the program itself has to
 * wake up first. */
#define GRANT_LEAD_FIXED (3 * NS_PER_MS / 10)

/* How much later than expected the work of a turn may drain before a client that said that it waits for it is no longer
 * believed. */
#define DRAIN_LATE_MAX (6 * NS_PER_MS / 10)

/* How soon to try again if clients wait but no tenant may have the turn, or the holder need not yield yet. */
#define RETRY_INTERVAL NS_PER_MS

/* How often active tenants are counted, to notice those that became inactive. */
#define CENSUS_INTERVAL (20 * NS_PER_MS)

/* The region of a holder whose work is late is read again after this part of the time that it is late. */
enum { CHECK_LATE_DIVISOR = 32 };

static bool is_held(const struct schedule *schedule) { return schedule->turn.number && !schedule->turn.drains_at; }

int schedule_run_tenant_to_check(struct schedule *schedule, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    bool is_due = is_held(schedule) && schedule->waiting_clients && turn->contested_since && now >= turn->check_idle_at;
    return is_due ? turn->tenant : SCHEDULE_NONE;
}

static uint64_t idle_timeout(const struct schedule *schedule, uint64_t drained_at) {
    const struct tenant *tenant = &schedule->tenants[schedule->turn.tenant];
    if (tenant_has_finished_visit(tenant, drained_at)) return IDLE_TIMEOUT_AFTER_VISIT;
    bool keeps_turn = tenant_returns_early(tenant) && !schedule->turn.asked_back_at;
    return keeps_turn ? IDLE_TIMEOUT_RETURNING : IDLE_TIMEOUT;
}

/* A thread that waits for the card writes at once when the work has drained, so the region is read often until then,
 * and less often the longer the work takes. */
static uint64_t revoke_time(const struct schedule *schedule, uint64_t drained_at, bool is_awaited, uint64_t now) {
    uint64_t revoke_at = drained_at + idle_timeout(schedule, drained_at);
    uint64_t late = min_u64(saturating_sub(now, drained_at) / CHECK_LATE_DIVISOR, RETRY_INTERVAL);
    return is_awaited ? max_u64(revoke_at, now + CURRENT_TURN_CHECK_MIN + late) : revoke_at;
}

/* Of a time that lies before the turn, only a change counts: the holder has launched something, by a clock that is
 * wrong. It keeps the turn for as long as its work in flight may take, and pays for that. */
static uint64_t revoke_time_without_clock(const struct schedule *schedule, uint64_t busy_until, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    bool has_changed = schedule->tenants[turn->tenant].last_busy_until != busy_until;
    return has_changed ? now + turn->budget : turn->begin_by;
}

/* The region's times are not trusted: one that lies far ahead counts as TENANT_LONG_KERNEL ahead. */
void schedule_run_note_use(struct schedule *schedule, uint64_t busy_until, uint64_t awaited_until, bool is_waiting,
                           uint64_t now) {
    struct current_turn *turn = &schedule->turn;
    struct tenant *tenant = &schedule->tenants[turn->tenant];
    uint64_t drained_at = saturating_sub(min_u64(busy_until, now + TENANT_LONG_KERNEL), ARBITRATION_BUSY_GRACE_NS);
    bool has_begun = drained_at > turn->began_at;
    uint64_t revoke_at = has_begun ? revoke_time(schedule, drained_at, awaited_until > now, now)
                                   : revoke_time_without_clock(schedule, busy_until, now);
    tenant->last_busy_until = busy_until;
    if (has_begun) expected_arrivals_conclude(schedule, true, turn->expected_at);
    turn->is_busy = has_begun && !is_waiting && now < revoke_at && busy_until <= now + TENANT_LONG_KERNEL;
    turn->is_idle = now >= revoke_at;
    if (!turn->is_idle || (turn->is_of_job && !turn->asked_back_at)) {
        turn->check_idle_at = max_u64(revoke_at, now + CURRENT_TURN_CHECK_MIN);
        return;
    }
    expected_arrivals_conclude(schedule, false, now);
    if (has_begun && !turn->asked_back_at) tenant_note_revoked(tenant, drained_at);
    current_turn_end(schedule, now, max_u64(drained_at, turn->began_at));
}

void schedule_run_note_busy_until(struct schedule *schedule, int tenant, uint64_t busy_until) {
    schedule->tenants[tenant].last_busy_until = busy_until;
}

/* When the current turn leaves the card: when its work drains, or at its deadline. */
static uint64_t end_of_turn(const struct schedule *schedule) {
    uint64_t limit = current_turn_deadline(schedule), drains_at = schedule->turn.drains_at;
    return drains_at ? min_u64(drains_at, limit) : limit;
}

/* If the only waiting client is the holder itself, or all are of the group that holds the turn, its turn ends before
 * the work has drained and the next one begins at once, because there is no handover. The next turn counts from the end
 * of the work. */
static bool is_own_successor(const struct schedule *schedule, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    bool is_near = turn->drains_at && turn->drains_at <= now + turn->budget;
    bool ends_for_arrival = turn->end_by && turn->end_by <= turn->drains_at + EXPECTED_ARRIVALS_NEAR;
    if (!is_near || ends_for_arrival || !schedule->waiting_clients) return false;
    if (group_turn_is_current(schedule)) return !clients_others_wait(schedule, turn->tenant);
    return schedule->waiting_clients == 1 && schedule->clients[turn->client].is_waiting;
}

static uint64_t lead_time(const struct schedule *schedule, int next) {
    bool is_fixed = schedule->tenants[next].demand.policy == POLICY_FIXED;
    return is_fixed ? GRANT_LEAD_FIXED : ARBITRATION_GRANT_LEAD_NS;
}

/* When the turn ends for the next one. One that was given back ends a little before its work has drained, so that the
 * next launch reaches the card in time. But work that comes too early makes the card change to it before the rest of
 * the other's, for a time slice of 2.6 ms (H200). So a tenant without a claim waits until the work has drained. */
static uint64_t end_for_next(struct schedule *schedule, uint64_t now) {
    uint64_t end = end_of_turn(schedule);
    if (!schedule->turn.drains_at || !schedule->waiting_clients) return end;
    int next = next_turn_choose(schedule, now).tenant;
    if (next != SCHEDULE_NONE && next_turn_has_claim(schedule, next))
        return end - min_u64(end, lead_time(schedule, next));
    return schedule->turn.is_drain_awaited ? min_u64(end + DRAIN_LATE_MAX, current_turn_deadline(schedule)) : end;
}

static void end_if_over(struct schedule *schedule, uint64_t now) {
    uint64_t end = end_of_turn(schedule);
    if (is_own_successor(schedule, now) || now >= end_for_next(schedule, now))
        current_turn_end(schedule, max_u64(now, end), max_u64(now, end));
}

static void begin_next(struct schedule *schedule, uint64_t now) {
    if (schedule->called_tenant != SCHEDULE_NONE) return;
    struct next_turn choice = next_turn_choose(schedule, now);
    if (choice.tenant == SCHEDULE_NONE) return;
    uint64_t budget = contention_turn_budget(schedule, now);
    if (choice.is_floor) schedule->last_floor_turn_at = now;
    budget =
        choice.is_protected ? min_u64(budget, TENANT_FLOOR_BUDGET) : next_turn_budget(schedule, choice.tenant, budget);
    struct expected_arrival soon = expected_arrivals_next(schedule, choice.tenant, now);
    bool is_near = !choice.is_protected && expected_arrivals_is_near(schedule, &soon, now);
    if (is_near)
        expected_arrivals_reserve(schedule, &soon, budget, now);
    else
        current_turn_begin(schedule, schedule->tenants[choice.tenant].first_waiting, budget,
                           expected_arrivals_turn_end(schedule, &soon), now);
    schedule->turn.is_protected = choice.is_protected;
}

static void take_census(struct schedule *schedule, uint64_t now) {
    if (now >= schedule->next_census_at) {
        schedule->next_census_at = now + CENSUS_INTERVAL;
        schedule->is_contention_stale |=
            contention_active_tenants(schedule, now) != schedule->active_tenants_at_refresh;
    }
    if (schedule->is_contention_stale) contention_refresh(schedule, now);
}

static uint64_t next_run_time(struct schedule *schedule, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    if (turn->drains_at) return end_for_next(schedule, now);
    if (!schedule->waiting_clients) return UINT64_MAX;
    if (!turn->number) return now + RETRY_INTERVAL;
    uint64_t next = min_u64(turn->check_idle_at, end_of_turn(schedule));
    if (turn->asked_back_at) return next;
    return min_u64(next, turn->yield_at > now ? turn->yield_at : now + RETRY_INTERVAL);
}

uint64_t schedule_run(struct schedule *schedule, uint64_t now) {
    current_turn_account(schedule, now);
    schedule->next_run_at = 0; /* current_turn_account has compared it with `now` */
    watermark_run(&schedule->watermark, now);
    overrun_budget_refill(&schedule->overrun_budget, now);
    take_census(schedule, now);
    if (schedule->turn.number) end_if_over(schedule, now);
    if (!schedule->turn.number && schedule->waiting_clients) begin_next(schedule, now);
    current_turn_note_waiter(schedule, now);
    if (is_held(schedule) && schedule->waiting_clients && !schedule->turn.asked_back_at && !schedule->turn.is_of_job &&
        next_turn_is_due(schedule, now))
        current_turn_ask_to_yield(schedule, now);
    schedule->next_run_at = next_run_time(schedule, now);
    return schedule->next_run_at;
}
