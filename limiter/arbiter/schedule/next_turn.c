#include "arbiter/schedule/next_turn.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/ranking.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/watermark/watermark.h"
#include "common/arithmetic.h"

/* The most GPU time, in ns of the whole card, that a tenant regains from tenants of its own rank after higher-ranked
 * tenants kept it waiting. */
#define LAG_MAX (1000 * NS_PER_MS)

/* How far, in ns of the card, a burst tenant may be behind another before it gets two turns in a row. */
#define ALTERNATION_LAG (8 * NS_PER_MS)

static bool is_best_effort_allowed(const struct schedule *schedule) {
    return watermark_allows_best_effort(&schedule->watermark);
}

/* A job's tenant has its turns with those on the job's other cards. */
static bool is_waiting(const struct tenant *tenant) {
    return tenant->is_taken && tenant->waiting_since != 0 && !tenant->is_of_job;
}

static void update_tenant(struct schedule *schedule, struct tenant *tenant, uint64_t now) {
    tenant_refill(tenant, now);
    tenant_bound_lag(tenant, schedule->virtual_time, tenant_virtual_time(LAG_MAX, FULL_CORES));
}

static bool is_burst(const struct tenant *tenant) { return tenant->demand.policy == POLICY_BURST; }

static bool had_last_turn(const struct schedule *schedule, int tenant) {
    return clients_is_connected(schedule, schedule->last_client) &&
           schedule->clients[schedule->last_client].tenant == tenant;
}

/* How far `tenant` is behind `other`, in ns of the card. */
static uint64_t lag_behind(const struct tenant *tenant, const struct tenant *other) {
    uint64_t virtual_lag = other->virtual_time > tenant->virtual_time ? other->virtual_time - tenant->virtual_time : 0;
    return min_u64(virtual_lag, LAG_MAX) * tenant->demand.weight / FULL_CORES;
}

/* Whether the two take turns one after the other, whatever the order of their virtual times: a tenant that waits for
 * two turns of another in a row would be late by one of them. */
static bool is_alternating(const struct schedule *schedule, const struct tenant *last, const struct tenant *other) {
    return is_burst(last) && is_burst(other) && ranking_is_equal(last, other, is_best_effort_allowed(schedule)) &&
           lag_behind(last, other) <= ALTERNATION_LAG;
}

static bool is_before(const struct schedule *schedule, int candidate, int best) {
    const struct tenant *first = &schedule->tenants[candidate], *second = &schedule->tenants[best];
    if (had_last_turn(schedule, candidate) && is_alternating(schedule, first, second)) return false;
    if (had_last_turn(schedule, best) && is_alternating(schedule, second, first)) return true;
    return ranking_is_before(first, second, is_best_effort_allowed(schedule));
}

static int best_waiting(struct schedule *schedule, uint64_t now) {
    int best = SCHEDULE_NONE;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        struct tenant *tenant = &schedule->tenants[i];
        if (!is_waiting(tenant)) continue;
        update_tenant(schedule, tenant, now);
        if (ranking_class(tenant, is_best_effort_allowed(schedule)) == CLASS_OVER_WATERMARK) continue;
        if (best == SCHEDULE_NONE || is_before(schedule, i, best)) best = i;
    }
    return best;
}

/* A fixed share beyond its credit does not starve: it waits because it has had its share. Nor does one that repays a
 * long kernel. */
static bool is_starved(const struct schedule *schedule, const struct tenant *tenant, uint64_t now) {
    enum class class = ranking_class(tenant, is_best_effort_allowed(schedule));
    return !tenant_repays_much(tenant) && class != CLASS_WITHIN_GUARANTEE && class != CLASS_OVER_FIXED_SHARE &&
           tenant_is_below_floor(tenant, now);
}

static int most_starved(const struct schedule *schedule, uint64_t now) {
    int longest = SCHEDULE_NONE;
    if (schedule->last_floor_turn_at + TENANT_FLOOR_INTERVAL > now) return longest;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (!is_waiting(tenant) || !is_starved(schedule, tenant, now)) continue;
        if (longest == SCHEDULE_NONE || tenant->floor_met_at < schedule->tenants[longest].floor_met_at) longest = i;
    }
    return longest;
}

/* The tenant for which the last turn was ended early goes before a starved one: the floor is due whatever the order,
 * and its 3 ms would be added to the time that the preemption was to save. */
static bool is_preempting(const struct schedule *schedule) {
    return schedule->preempting_tenant != SCHEDULE_NONE && is_waiting(&schedule->tenants[schedule->preempting_tenant]);
}

struct next_turn next_turn_choose(struct schedule *schedule, uint64_t now) {
    if (is_preempting(schedule)) return (struct next_turn){.tenant = schedule->preempting_tenant};
    int starved = most_starved(schedule, now);
    if (starved != SCHEDULE_NONE) return (struct next_turn){starved, .is_floor = true, .is_protected = true};
    int best = best_waiting(schedule, now);
    bool is_overdue = best != SCHEDULE_NONE && tenant_is_overdue(&schedule->tenants[best]);
    return (struct next_turn){best, .is_protected = is_overdue};
}

/* How much less of the card's time, in ns, a tenant has had than the tenant of the last turn, which waits for another;
 * negative: how much more. 0 if their virtual times do not decide between the two. Half of the last turn is subtracted:
 * when two tenants that take turns have had equal times, the tenant of the last turn is half a turn ahead. */
static int64_t lacks(const struct schedule *schedule, int tenant) {
    const struct tenant *own = &schedule->tenants[tenant];
    if (had_last_turn(schedule, tenant) || !clients_is_connected(schedule, schedule->last_client)) return 0;
    const struct tenant *last = &schedule->tenants[schedule->clients[schedule->last_client].tenant];
    if (!is_waiting(last) || !is_burst(own) || !is_burst(last)) return 0;
    if (!ranking_is_equal(own, last, is_best_effort_allowed(schedule))) return 0;
    uint64_t turn = min_u64(schedule->last_turn_ns, LAG_MAX) * own->demand.weight / last->demand.weight;
    return (int64_t)lag_behind(own, last) - (int64_t)turn / 2;
}

/* A turn makes up for half of what its tenant lacks. No turn is exactly as long as it should be, and if each made up
 * for all of the difference, the error of the last turn would come back in the next one. Turns of whole steps have the
 * same number of them each time. */
uint64_t next_turn_budget(const struct schedule *schedule, int tenant, uint64_t budget) {
    if (clients_step(schedule, schedule->tenants[tenant].first_waiting)) return budget;
    int64_t lacking = lacks(schedule, tenant) / 2, most = (int64_t)budget / 4;
    return (uint64_t)((int64_t)budget + max_i64(min_i64(lacking, most), -most));
}

static bool is_best_effort(const struct tenant *tenant) { return tenant->demand.policy == POLICY_BEST_EFFORT; }

static bool has_no_claim_against(const struct tenant *tenant, const struct tenant *other) {
    return is_best_effort(tenant) && !is_best_effort(other);
}

bool next_turn_has_claim(const struct schedule *schedule, int tenant) {
    return !has_no_claim_against(&schedule->tenants[tenant], &schedule->tenants[schedule->turn.tenant]);
}

/* Preemption costs two handovers. Between tenants that have paid for the card it is worth that only for one that
 * catches up with its guarantee, and for a latency-sensitive one that is within its guarantee or outranks the holder. A
 * best-effort holder has no claim, so every tenant of another policy preempts it. */
static bool may_preempt(const struct schedule *schedule, const struct tenant *waiting, const struct tenant *holding) {
    bool is_allowed = is_best_effort_allowed(schedule);
    if (ranking_outranks(holding, waiting, is_allowed)) return false;
    if (has_no_claim_against(holding, waiting)) return true;
    if (ranking_catches_up(waiting, holding, is_allowed)) return true;
    if (ranking_catches_up(holding, waiting, is_allowed) || !tenant_is_latency_sensitive(waiting)) return false;
    return ranking_class(waiting, is_allowed) == CLASS_WITHIN_GUARANTEE ||
           ranking_outranks(waiting, holding, is_allowed);
}

/* A latency-sensitive holder is not preempted while its turn is short, so that two of them do not interrupt each
 * other. */
static bool preempts_now(const struct schedule *schedule, const struct tenant *waiting, const struct tenant *holding,
                         uint64_t now) {
    if (schedule->turn.is_protected && now < schedule->turn.yield_at) return false;
    bool is_protected = tenant_is_latency_sensitive(holding) && !has_no_claim_against(holding, waiting);
    if (is_protected && now < schedule->turn.began_at + TENANT_SHORT_TURN) return false;
    return waiting != holding && may_preempt(schedule, waiting, holding);
}

bool next_turn_would_preempt(const struct schedule *schedule, int holder, int candidate) {
    const struct tenant *holding = &schedule->tenants[holder];
    return !tenant_is_latency_sensitive(holding) && may_preempt(schedule, &schedule->tenants[candidate], holding);
}

static bool preempt(struct schedule *schedule, int candidate, uint64_t now) {
    const struct tenant *holding = &schedule->tenants[schedule->turn.tenant];
    if (candidate == SCHEDULE_NONE || !preempts_now(schedule, &schedule->tenants[candidate], holding, now))
        return false;
    schedule->preempting_tenant = candidate;
    schedule->preempted_tenant = schedule->turn.tenant;
    return true;
}

static bool goes_before(const struct schedule *schedule, int first, int second) {
    return ranking_is_before(&schedule->tenants[first], &schedule->tenants[second], is_best_effort_allowed(schedule));
}

/* In the middle of a step, the holder has not been charged for all of the turn, so virtual time would give it another
 * step or none by chance. */
static bool goes_on(const struct schedule *schedule, int holder, int choice) {
    return schedule->turn.is_of_steps ? is_before(schedule, holder, choice) : goes_before(schedule, holder, choice);
}

bool next_turn_is_due(struct schedule *schedule, uint64_t now) {
    int holder = schedule->turn.tenant;
    update_tenant(schedule, &schedule->tenants[holder], now);
    if (preempt(schedule, best_waiting(schedule, now), now)) return true;
    struct next_turn choice = next_turn_choose(schedule, now);
    if (choice.tenant == SCHEDULE_NONE || now < schedule->turn.yield_at) return false;
    return choice.is_protected || choice.tenant == holder || !goes_on(schedule, holder, choice.tenant);
}

/* Jobs of one rank take turns one after the other: their turns are as long as each other's steps allow, so virtual time
 * would have each go on for what the other one went on. */
static bool holder_goes_before(const struct schedule *schedule, int tenant) {
    const struct tenant *waiting = &schedule->tenants[tenant], *holding = &schedule->tenants[schedule->turn.tenant];
    if (schedule->turn.is_of_job) return ranking_outranks(holding, waiting, is_best_effort_allowed(schedule));
    return goes_before(schedule, schedule->turn.tenant, tenant);
}

bool next_turn_would_be(struct schedule *schedule, int tenant, uint64_t now) {
    struct tenant *own = &schedule->tenants[tenant];
    update_tenant(schedule, own, now);
    if (ranking_class(own, is_best_effort_allowed(schedule)) == CLASS_OVER_WATERMARK) return false;
    struct next_turn choice = next_turn_choose(schedule, now);
    if (choice.is_floor || (choice.tenant != SCHEDULE_NONE && !is_before(schedule, tenant, choice.tenant)))
        return false;
    return !schedule->turn.number || schedule->turn.tenant == tenant || !holder_goes_before(schedule, tenant);
}

bool next_turn_is_due_for(struct schedule *schedule, int tenant, uint64_t now) {
    struct tenant *waiting = &schedule->tenants[tenant], *holding = &schedule->tenants[schedule->turn.tenant];
    update_tenant(schedule, waiting, now);
    update_tenant(schedule, holding, now);
    return now >= schedule->turn.yield_at || preempts_now(schedule, waiting, holding, now);
}

bool next_turn_is_unbounded(const struct schedule *schedule, int tenant) {
    const struct tenant *holding = &schedule->tenants[tenant];
    if (holding->demand.policy == POLICY_BEST_EFFORT && watermark_is_tight(&schedule->watermark)) return false;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *other = &schedule->tenants[i];
        if (is_waiting(other) &&
            (other == holding || !ranking_outranks(holding, other, is_best_effort_allowed(schedule))))
            return false;
    }
    return true;
}

bool next_turn_has_latency_sensitive_waiter(const struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (is_waiting(&schedule->tenants[i]) && tenant_is_known_to_rest(&schedule->tenants[i])) return true;
    return false;
}

bool next_turn_has_latency_sensitive_rival(const struct schedule *schedule, int tenant, uint64_t now) {
    bool has_no_claim = is_best_effort(&schedule->tenants[tenant]);
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *other = &schedule->tenants[i];
        if (i == tenant || !other->is_taken || !other->clients) continue;
        bool has_claim = (other->demand.guarantee > 0 || has_no_claim) &&
                         !ranking_catches_up(&schedule->tenants[tenant], other, is_best_effort_allowed(schedule));
        if (has_claim && tenant_is_latency_sensitive(other) && tenant_is_active(other, now)) return true;
    }
    return false;
}

bool next_turn_is_preemptible(const struct schedule *schedule, int tenant, uint64_t now) {
    for (int32_t i = 0; is_best_effort(&schedule->tenants[tenant]) && i < schedule->tenants_high; i++) {
        const struct tenant *other = &schedule->tenants[i];
        if (other->is_taken && other->clients && !is_best_effort(other) && tenant_is_active(other, now)) return true;
    }
    return false;
}
