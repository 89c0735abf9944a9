#include "arbiter/tenant/tenant.h"

#include "common/arithmetic.h"

enum { FULL = 100 };

/* The credit grows by 1.1 times the guarantee (11 per mille for each percent), because held time includes handovers. */
enum { REFILL_PERMILLE = 11 };

/* An idle tenant saves up 20 ms of credit at most. One that waits for longer than a cycle of turns keeps what it earns
 * from then on: otherwise kernels of 0.7 s beside it would leave it half of its guarantee. The bounds of the debt and
 * of the time that one refill counts keep the arithmetic within 64 bits. */
#define CREDIT_MAX ((int64_t)(20 * NS_PER_MS))
#define LONG_WAIT  (50 * NS_PER_MS)
#define DEBT_MAX   ((int64_t)(10000 * NS_PER_MS))
#define REFILL_MAX (1000000 * NS_PER_MS)

/* A tenant is behind if it has lately held the card for less than BEHIND percent of its guarantee, and ahead with more
 * than AHEAD: turns one after the other leave tenants with equal guarantees apart by a turn or two. */
enum { BEHIND = 90, AHEAD = 110 };

/* How long a tenant that is behind goes first, since it rested. */
#define CATCH_UP_MAX (50 * NS_PER_MS)

/* A score of 4 means latency-sensitive. Each short turn adds 1, up to 8; a long one takes 4 away. So one long turn ends
 * it, or from 8 the second: a single one may be the fault of a busy machine. */
enum { SCORE_LATENCY_SENSITIVE = 4, SCORE_EARLY = 4, SCORE_MAX = 8 };

/* A return this soon after the tenant became idle: for the two handovers, the neighbour has got next to nothing. */
#define EARLY_RETURN (5 * TENANT_HANDOVER / 2)

/* The longest end of a turn that counts, and the part that each turn takes off it. */
#define ASKED_BACK_MAX (5 * NS_PER_MS)
enum { FORGET_DIVISOR = 8 };

static int64_t clamp(int64_t value, int64_t min, int64_t max) {
    if (value < min) return min;
    return value > max ? max : value;
}

struct tenant tenant_new(const struct demand *demand, uint64_t now) {
    return (struct tenant){.is_taken = true,
                           .demand = *demand,
                           .first_waiting = -1,
                           .last_waiting = -1,
                           .credit_ns = CREDIT_MAX,
                           .refilled_at = now,
                           .catch_up_ns = CATCH_UP_MAX,
                           .recent = {.at = now},
                           .overrun_budget = overrun_budget_new(now),
                           .regular_client = -1,
                           .asked_back_ns = ASKED_BACK_MAX,
                           .short_turn_score = SCORE_LATENCY_SENSITIVE};
}

static uint64_t since(uint64_t then, uint64_t now) {
    uint64_t passed = now > then ? now - then : 0;
    return passed < REFILL_MAX ? passed : REFILL_MAX;
}

static int64_t earned_in(const struct tenant *tenant, uint64_t ns) {
    return (int64_t)(ns * tenant->demand.guarantee * REFILL_PERMILLE / 1000);
}

static bool has_waited_long(const struct tenant *tenant, uint64_t now) {
    return tenant->waiting_since && now > tenant->waiting_since + LONG_WAIT;
}

/* Credit above the cap is kept, and grows while the tenant waits for long. */
static int64_t credit_max(const struct tenant *tenant, int64_t earned, uint64_t now) {
    int64_t kept = tenant->credit_ns + (has_waited_long(tenant, now) ? earned : 0);
    return clamp(kept, CREDIT_MAX, CREDIT_MAX + earned_in(tenant, TENANT_LONG_KERNEL));
}

void tenant_note_joint_use(struct tenant *tenant, uint64_t ns, uint64_t now) {
    recent_time_age(&tenant->recent, now);
    recent_time_add(&tenant->recent, ns);
}

bool tenant_is_behind(const struct tenant *tenant) {
    return tenant->catch_up_ns && recent_time_is_below(&tenant->recent, tenant->demand.guarantee, BEHIND);
}

bool tenant_is_overdue(const struct tenant *tenant) {
    return tenant->credit_ns > 0 && has_waited_long(tenant, tenant->refilled_at) &&
           recent_time_is_below(&tenant->recent, tenant->demand.guarantee, BEHIND);
}

bool tenant_is_ahead(const struct tenant *tenant) {
    return tenant->demand.policy == POLICY_BURST &&
           recent_time_is_above(&tenant->recent, tenant->demand.guarantee, AHEAD);
}

/* How long it has not waited since the last refill. */
static uint64_t rested(const struct tenant *tenant, uint64_t now) {
    return since(tenant->refilled_at, tenant->waiting_since ? min_u64(tenant->waiting_since, now) : now);
}

static uint64_t part_of(uint64_t ns, const struct tenant *tenant) { return ns * tenant->demand.guarantee / FULL; }

static void add_catch_up(struct tenant *tenant, uint64_t ns) {
    tenant->catch_up_ns = min_u64(tenant->catch_up_ns + ns, CATCH_UP_MAX);
}

/* It rested for none of this time, so what it was given for that is taken too. */
static void use_catch_up(struct tenant *tenant, uint64_t ns) {
    tenant->catch_up_ns = saturating_sub(tenant->catch_up_ns, ns + part_of(ns, tenant));
}

void tenant_refill(struct tenant *tenant, uint64_t now) {
    recent_time_age(&tenant->recent, now);
    add_catch_up(tenant, part_of(rested(tenant, now), tenant));
    int64_t earned = earned_in(tenant, since(tenant->refilled_at, now));
    tenant->credit_ns = clamp(tenant->credit_ns + earned, -DEBT_MAX, credit_max(tenant, earned, now));
    overrun_budget_refill(&tenant->overrun_budget, now);
    if (now > tenant->refilled_at) tenant->refilled_at = now;
}

/* Credit above the cap does not grow by what is earned while the tenant holds the card, so that is taken off here. */
static int64_t cost_of(const struct tenant *tenant, uint64_t ns) {
    int64_t earned = tenant->credit_ns > CREDIT_MAX ? earned_in(tenant, ns) : 0;
    return (int64_t)saturating_sub(ns, (uint64_t)earned);
}

void tenant_charge(struct tenant *tenant, uint64_t ns, bool others_wait) {
    uint64_t charged = ns < (uint64_t)DEBT_MAX ? ns : (uint64_t)DEBT_MAX;
    if (others_wait)
        tenant->credit_ns = clamp(tenant->credit_ns - cost_of(tenant, charged), -DEBT_MAX, tenant->credit_ns);
    tenant->virtual_time += tenant_virtual_time(ns, tenant->demand.weight);
    tenant->held_ns += ns;
    use_catch_up(tenant, charged);
    recent_time_add(&tenant->recent, ns);
    tenant->floor_ns += ns;
    if (tenant->floor_ns < TENANT_FLOOR_BUDGET) return;
    tenant->floor_ns = 0;
    tenant->floor_met_at = tenant->refilled_at;
}

static void move_charge(struct tenant *from, struct tenant *to, int64_t ns) {
    from->credit_ns = clamp(from->credit_ns + ns, -DEBT_MAX, DEBT_MAX);
    to->credit_ns = clamp(to->credit_ns - ns, -DEBT_MAX, to->credit_ns);
}

void tenant_charge_handovers(struct tenant *preempted, struct tenant *preempting) {
    move_charge(preempted, preempting, 2 * (int64_t)TENANT_HANDOVER);
}

void tenant_charge_group_handover(struct tenant *group, struct tenant *next) {
    move_charge(next, group, (int64_t)TENANT_GROUP_HANDOVER);
}

/* A rare long end is remembered for tens of turns: then turns are shorter than they may be, and not longer. */
void tenant_note_asked_back(struct tenant *tenant, uint64_t ns) {
    uint64_t past = tenant->asked_back_ns;
    tenant->asked_back_ns = max_u64(min_u64(ns, ASKED_BACK_MAX), past - past / FORGET_DIVISOR);
}

/* An early return weighs more than a late one: a pause that is too long costs the neighbours EARLY_RETURN of the card,
 * a turn that is revoked too early costs all of them two handovers and the tenant its place. */
static void learn_return(struct tenant *tenant, uint64_t now) {
    if (!tenant->revoked_idle_since) return;
    bool is_early = now < tenant->revoked_idle_since + EARLY_RETURN;
    tenant->revoked_idle_since = 0;
    if (is_early)
        tenant->early_return_score = (uint32_t)min_u64(tenant->early_return_score + 2, SCORE_MAX);
    else if (tenant->early_return_score)
        tenant->early_return_score--;
}

void tenant_note_arrival(struct tenant *tenant, int client, uint64_t now) {
    if (tenant->regular_client != client) {
        tenant->arrivals = (struct arrival_predictor){0};
        tenant->pauses = (struct pause_predictor){0};
    }
    tenant->regular_client = client;
    learn_return(tenant, now);
    arrival_predictor_note_arrival(&tenant->arrivals, now);
    pause_predictor_note_arrival(&tenant->pauses, now);
}

void tenant_note_left(struct tenant *tenant, uint64_t idle_since) {
    uint64_t arrived_at = tenant->arrivals.last_arrival_at;
    tenant->visit_ns = idle_since > arrived_at ? idle_since - arrived_at : 0;
    pause_predictor_note_left(&tenant->pauses, idle_since);
}

uint64_t tenant_next_arrival(struct tenant *tenant, uint64_t now) {
    arrival_predictor_skip_missed(&tenant->arrivals, now);
    bool is_by_pause = tenant->pauses.confidence > tenant->arrivals.confidence;
    return is_by_pause ? pause_predictor_next(&tenant->pauses, now) : arrival_predictor_next(&tenant->arrivals);
}

bool tenant_has_finished_visit(const struct tenant *tenant, uint64_t now) {
    bool is_periodic = arrival_predictor_next(&tenant->arrivals) || pause_predictor_is_confident(&tenant->pauses);
    return is_periodic && tenant->visit_ns && now >= tenant->arrivals.last_arrival_at + tenant->visit_ns * 7 / 8;
}

void tenant_learn_turn_length(struct tenant *tenant, bool was_short) {
    if (!was_short)
        tenant->short_turn_score -= (uint32_t)min_u64(tenant->short_turn_score, SCORE_LATENCY_SENSITIVE);
    else if (tenant->short_turn_score < SCORE_MAX)
        tenant->short_turn_score++;
}

void tenant_note_revoked(struct tenant *tenant, uint64_t idle_since) { tenant->revoked_idle_since = idle_since; }

bool tenant_returns_early(const struct tenant *tenant) { return tenant->early_return_score >= SCORE_EARLY; }

bool tenant_is_latency_sensitive(const struct tenant *tenant) {
    return tenant->short_turn_score >= SCORE_LATENCY_SENSITIVE;
}

bool tenant_is_known_to_rest(const struct tenant *tenant) {
    return tenant_is_latency_sensitive(tenant) && tenant->last_ending == TURN_ENDED_IDLE;
}

bool tenant_is_active(const struct tenant *tenant, uint64_t now) {
    return tenant->last_active_at != 0 && now < tenant->last_active_at + TENANT_ACTIVE_NS;
}

void tenant_note_active(struct tenant *tenant, uint64_t now) {
    if (tenant->last_active_at + TENANT_FLOOR_INTERVAL < now) tenant->floor_met_at = now;
    tenant->last_active_at = now;
}

bool tenant_is_below_floor(const struct tenant *tenant, uint64_t now) {
    return tenant->waiting_since != 0 && tenant->floor_met_at + TENANT_FLOOR_INTERVAL <= now;
}

bool tenant_repays_much(const struct tenant *tenant) {
    return tenant->demand.guarantee && tenant->credit_ns < -CREDIT_MAX;
}

uint64_t tenant_virtual_time(uint64_t ns, uint32_t weight) { return ns * FULL / (weight ? weight : 1); }

void tenant_leave(struct tenant *tenant, uint64_t virtual_time) {
    tenant->virtual_time_at_leave = virtual_time;
    tenant->credit_ns = clamp(tenant->credit_ns, -DEBT_MAX, CREDIT_MAX);
}

void tenant_return(struct tenant *tenant, uint64_t virtual_time) {
    tenant->virtual_time += virtual_time - tenant->virtual_time_at_leave;
}

void tenant_bound_lag(struct tenant *tenant, uint64_t virtual_time, uint64_t lag_max) {
    if (tenant->virtual_time + lag_max < virtual_time) tenant->virtual_time = virtual_time - lag_max;
}
