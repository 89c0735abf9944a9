#include "arbiter/schedule/joint_turns.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/current_turn.h"
#include "arbiter/schedule/joint_mode.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/watermark/watermark.h"
#include "common/arithmetic.h"

/* GPU time that may be in flight in a joint turn: enough for a host that is interrupted, and soon over when turns are
 * to be apart. */
#define DEPTH (5 * NS_PER_MS)

bool joint_turns_are_on(const struct schedule *schedule) { return joint_mode_is_on(&schedule->joint); }

static bool is_active(const struct tenant *tenant, uint64_t now) {
    return tenant->is_taken && tenant->clients && tenant_is_active(tenant, now);
}

bool joint_turns_has(const struct schedule *schedule, int client, uint64_t now) {
    const struct client *holder = &schedule->clients[client];
    return joint_turns_are_on(schedule) && holder->page.joint && holder->page.turn &&
           tenant_is_active(&schedule->tenants[holder->tenant], now);
}

void joint_turns_grant(struct schedule *schedule, int client, uint64_t now) {
    struct arbitration_page *page = &schedule->clients[client].page;
    clients_dequeue(schedule, client);
    clients_publish_turn(schedule, client, clients_new_turn_number(schedule), UINT64_MAX, DEPTH);
    page->joint = 1;
    page->end_by = 0;
    page->free_at = now;
}

/* Tenants of several ranks, jobs, and clients that do not know joint turns keep turns apart. Of fixed shares nothing is
 * lost in joint turns as long as every tenant uses little: one that uses more is served better, and held to its share
 * more exactly, in turns apart. */
struct conditions {
    unsigned active_tenants, with_fixed_share, best_effort, priorities, without_room, of_jobs;
    uint32_t priority;
};

/* Less than this percentage of a guarantee is little. */
enum { LITTLE = 50 };

static void count_tenant(struct conditions *found, const struct tenant *tenant) {
    found->without_room += !recent_time_is_below(&tenant->use.recent, tenant->demand.guarantee, LITTLE);
    found->priorities += found->active_tenants == 0 || tenant->demand.priority != found->priority;
    found->priority = tenant->demand.priority;
    found->active_tenants++;
    found->of_jobs += tenant->is_of_job;
    found->with_fixed_share += tenant->demand.policy == POLICY_FIXED;
    found->best_effort += tenant->demand.policy == POLICY_BEST_EFFORT;
}

static bool do_all_clients_join(const struct schedule *schedule, uint64_t now) {
    for (int32_t i = 0; i < schedule->clients_high; i++) {
        const struct client *client = &schedule->clients[i];
        if (client->is_taken && !client->joins && is_active(&schedule->tenants[client->tenant], now)) return false;
    }
    return true;
}

static bool is_possible(const struct schedule *schedule, uint64_t now) {
    struct conditions found = {0};
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (is_active(&schedule->tenants[i], now)) count_tenant(&found, &schedule->tenants[i]);
    if (found.active_tenants < 2 || found.priorities > 1 || found.of_jobs) return false;
    if (found.with_fixed_share && found.without_room) return false;
    if (found.best_effort && watermark_is_tight(&schedule->watermark)) return false;
    return do_all_clients_join(schedule, now);
}

/* Among tenants within their guarantees one is slower only because another one, which turns apart happened to serve
 * less, has what it is to have. In the first moments of a measurement every tenant that runs has more than its
 * guarantee, so that is judged over JOINT_TRIAL at least. */
static struct joint_figures figures_of(const struct schedule *schedule, uint64_t now) {
    struct joint_figures figures = {.wanted_ns = schedule->wanted_ns,
                                    .contested_ns = schedule->contested_ns,
                                    .is_possible = is_possible(schedule, now)};
    uint64_t passed = now - schedule->joint.measured_since, window = max_u64(passed, JOINT_TRIAL);
    bool is_any_ahead = false, asks_any_within = false;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (!is_active(tenant, now)) continue;
        is_any_ahead |= tenant_use_is_ahead(&tenant->use, tenant->demand.guarantee, window);
        asks_any_within |= tenant_use_asks_within(&tenant->use, tenant->demand.guarantee, passed);
        figures.used_ns += tenant->use.used_ns;
        figures.has_newcomer |= tenant->use.is_new;
        figures.is_any_behind |= tenant_use_is_behind(&tenant->use, tenant->demand.guarantee, passed);
        figures.is_any_slower |= tenant_use_is_slower(&tenant->use, tenant->demand.guarantee, passed, window);
        figures.is_any_unseen |= tenant_use_is_unseen(&tenant->use, tenant->demand.guarantee, passed);
    }
    figures.is_any_slower &= is_any_ahead;
    figures.is_any_at_risk = asks_any_within && is_any_ahead;
    return figures;
}

static void begin_measurement(struct schedule *schedule) {
    schedule->wanted_ns = schedule->contested_ns = 0;
    for (int32_t i = 0; i < schedule->tenants_high; i++) tenant_use_begin(&schedule->tenants[i].use);
}

static void note_apart(struct schedule *schedule, uint64_t passed) {
    for (int32_t i = 0; i < schedule->tenants_high; i++) tenant_use_note_apart(&schedule->tenants[i].use, passed);
}

/* The client that has the turn asks again when it launches. */
static void begin_joint_turns(struct schedule *schedule, uint64_t now) {
    if (schedule->turn.number) current_turn_end(schedule, now, now);
    schedule->preempting_tenant = SCHEDULE_NONE;
    for (int32_t i = 0; i < schedule->clients_high; i++)
        if (schedule->clients[i].is_taken && schedule->clients[i].is_waiting) joint_turns_grant(schedule, i, now);
}

static void end_joint_turns(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->clients_high; i++) {
        struct client *client = &schedule->clients[i];
        if (client->is_taken && client->page.joint) clients_publish_turn(schedule, i, 0, 0, 0);
    }
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        schedule->tenants[i].virtual_time = schedule->tenants[i].virtual_time_at_leave = schedule->virtual_time;
    schedule->last_client = SCHEDULE_NONE;
}

static void apply(struct schedule *schedule, enum joint_change change, uint64_t now) {
    if (change == JOINT_GOES_ON) return;
    if (change == JOINT_BEGINS) begin_joint_turns(schedule, now);
    if (change == JOINT_ENDS) end_joint_turns(schedule);
    begin_measurement(schedule);
}

void joint_turns_run(struct schedule *schedule, uint64_t now) {
    uint64_t passed = now - schedule->joint.measured_since;
    bool was_apart = !joint_turns_are_on(schedule);
    struct joint_figures figures = figures_of(schedule, now);
    enum joint_change change = joint_mode_step(&schedule->joint, &figures, now);
    if (was_apart && change != JOINT_GOES_ON) note_apart(schedule, passed);
    apply(schedule, change, now);
}

void joint_turns_note_newcomer(struct schedule *schedule, int tenant, uint64_t now) {
    schedule->tenants[tenant].use.is_new = true;
    if (joint_turns_are_on(schedule)) joint_turns_run(schedule, now);
}

bool joint_turns_needs_use(const struct schedule *schedule, int tenant, uint64_t now) {
    return is_active(&schedule->tenants[tenant], now);
}

void joint_turns_note_use(struct schedule *schedule, int tenant, const struct joint_use *use, uint64_t now) {
    struct tenant *user = &schedule->tenants[tenant];
    uint64_t used = tenant_use_read(&user->use, use->gpu_ns, use->waited_ns, now);
    if (!joint_turns_are_on(schedule)) return;
    bool is_busy = used || (use->busy_until > now && use->busy_until < now + TENANT_LONG_KERNEL);
    tenant_note_joint_use(user, used, now);
    if (is_busy) user->last_active_at = now;
}
