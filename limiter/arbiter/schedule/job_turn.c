#include "arbiter/schedule/job_turn.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/contention.h"
#include "arbiter/schedule/current_turn.h"
#include "arbiter/schedule/joint_turns.h"
#include "arbiter/schedule/next_turn.h"
#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/tenant.h"
#include "common/arithmetic.h"

/* The shortest turn of a job, also while a tenant waits that would preempt it: in shorter turns, handovers on all of
 * its cards would take a tenth of the time (two H100: turns of 1, 2.5 and 5 ms give 92, 96 and 99 % of those of 10). */
#define LEAST_TURN (5 * NS_PER_MS / 2)

static int32_t only_client(const struct schedule *schedule, int tenant) {
    for (int32_t i = 0; schedule->tenants[tenant].clients == 1 && i < schedule->clients_high; i++)
        if (schedule->clients[i].is_taken && schedule->clients[i].tenant == tenant) return i;
    return SCHEDULE_NONE;
}

bool job_turn_is_possible(const struct schedule *schedule, int tenant, bool is_repaying, uint64_t now) {
    const struct tenant *own = &schedule->tenants[tenant];
    return own->is_taken && own->clients == 1 && !own->demand.is_group && own->is_contended &&
           (is_repaying || tenant_is_active(own, now));
}

bool job_turn_is_pace_possible(const struct schedule *schedule, int tenant) {
    const struct tenant *own = &schedule->tenants[tenant];
    return own->is_taken && own->clients == 1 && !own->demand.is_group;
}

bool job_turn_pace(struct schedule *schedule, int tenant, bool is_paced) {
    struct tenant *own = &schedule->tenants[tenant];
    if (own->is_paced == is_paced) return false;
    own->is_paced = is_paced;
    schedule->paced_tenants += is_paced ? 1 : -1;
    schedule->is_contention_stale = true;
    return true;
}

static void publish_number(struct schedule *schedule, int tenant, uint32_t number) {
    int32_t client = only_client(schedule, tenant);
    if (client == SCHEDULE_NONE) return;
    schedule->clients[client].page.job = number;
    clients_mark_changed(schedule, client);
}

bool job_turn_tell(struct schedule *schedule, int tenant, const struct job_news *news) {
    int32_t client = only_client(schedule, tenant);
    if (client == SCHEDULE_NONE) return false;
    struct arbitration_page *page = &schedule->clients[client].page;
    bool is_known =
        page->job_spans == news->spans && page->job_batches == news->batches && page->job_awaited == news->is_awaited;
    page->job_spans = news->spans;
    page->job_batches = news->batches;
    page->job_awaited = news->is_awaited;
    if (!is_known) clients_mark_changed(schedule, client);
    return !is_known;
}

static bool has_turn(const struct schedule *schedule, int tenant) {
    return schedule->turn.number && schedule->turn.tenant == tenant;
}

/* What works on a card of a job may be spinning for a card of the job that has no turn, so it is not waited for as for
 * a long kernel. */
void job_turn_join(struct schedule *schedule, int tenant, uint32_t number, uint64_t now) {
    schedule->tenants[tenant].is_of_job = true;
    if (has_turn(schedule, tenant)) schedule->turn.may_finish = false;
    if (schedule->preempting_tenant == tenant) schedule->preempting_tenant = SCHEDULE_NONE;
    publish_number(schedule, tenant, number);
    if (joint_turns_are_on(schedule)) joint_turns_run(schedule, now);
}

/* A turn that it has becomes one of its own. */
void job_turn_part(struct schedule *schedule, int tenant) {
    schedule->tenants[tenant].is_of_job = false;
    if (schedule->called_tenant == tenant) schedule->called_tenant = SCHEDULE_NONE;
    if (schedule->turn.number && schedule->turn.tenant == tenant) schedule->turn.is_of_job = false;
    publish_number(schedule, tenant, 0);
    job_turn_tell(schedule, tenant, &(struct job_news){0});
}

static bool is_due(struct schedule *schedule, int tenant, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    if (!turn->number || turn->asked_back_at || turn->drains_at) return true;
    if (has_turn(schedule, tenant)) return false;
    if (turn->is_of_job && now < turn->began_at + LEAST_TURN) return false;
    return next_turn_is_due_for(schedule, tenant, now);
}

static bool is_behind_job(const struct schedule *schedule, int tenant, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    bool is_over = turn->asked_back_at || turn->drains_at || now >= turn->yield_at;
    return turn->number && turn->is_of_job && turn->tenant != tenant && !is_over;
}

static bool is_wanted_back(struct schedule *schedule, uint64_t now) {
    return schedule->waiting_clients && now >= schedule->turn.began_at + LEAST_TURN && next_turn_is_due(schedule, now);
}

struct job_turn_view job_turn_look(struct schedule *schedule, int tenant, uint64_t now) {
    const struct tenant *own = &schedule->tenants[tenant];
    const struct current_turn *turn = &schedule->turn;
    bool holds = has_turn(schedule, tenant), would_be = next_turn_would_be(schedule, tenant, now);
    bool is_any_waiting = clients_others_wait(schedule, tenant);
    return (struct job_turn_view){.waits_since = own->waiting_since,
                                  .class = ranking_class(own, watermark_allows_best_effort(&schedule->watermark)),
                                  .priority = own->demand.priority,
                                  .is_first = would_be,
                                  .is_due = would_be && is_due(schedule, tenant, now),
                                  .is_behind_job = is_behind_job(schedule, tenant, now),
                                  .is_free = !turn->number,
                                  .holds = holds,
                                  .is_contested = is_any_waiting,
                                  .is_idle = !holds || !is_any_waiting || turn->is_idle,
                                  .is_wanted_back = holds && !turn->asked_back_at && is_wanted_back(schedule, now)};
}

void job_turn_want(struct schedule *schedule, int tenant, uint64_t now) {
    struct tenant *own = &schedule->tenants[tenant];
    int32_t client = only_client(schedule, tenant);
    if (client == SCHEDULE_NONE || own->waiting_since || has_turn(schedule, tenant)) return;
    current_turn_account(schedule, now);
    tenant_return(own, schedule->virtual_time);
    clients_enqueue(schedule, client, now);
    current_turn_note_waiter(schedule, now);
}

/* Its work goes on, in the job's next turn. */
static void take_back(struct schedule *schedule, int tenant, uint64_t now) {
    current_turn_end(schedule, now, now);
    job_turn_want(schedule, tenant, now);
}

void job_turn_call(struct schedule *schedule, int tenant, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    if (has_turn(schedule, tenant)) take_back(schedule, tenant, now);
    schedule->called_tenant = tenant;
    bool is_held = turn->number && !turn->drains_at && !turn->asked_back_at;
    if (is_held) current_turn_ask_to_yield(schedule, now);
}

void job_turn_withdraw(struct schedule *schedule, int tenant) {
    if (schedule->called_tenant == tenant) schedule->called_tenant = SCHEDULE_NONE;
}

uint64_t job_turn_budget(const struct schedule *schedule, uint64_t now) {
    return contention_turn_budget(schedule, now);
}

void job_turn_begin(struct schedule *schedule, int tenant, uint32_t number, uint64_t budget, bool is_floor,
                    uint64_t now) {
    if (schedule->called_tenant == tenant) schedule->called_tenant = SCHEDULE_NONE;
    int32_t client = schedule->tenants[tenant].first_waiting;
    if (client == SCHEDULE_NONE || schedule->turn.number) return;
    current_turn_begin(schedule, client, budget, 0, now);
    schedule->turn.is_of_job = true;
    schedule->turn.may_finish = false;
    schedule->turn.is_protected = is_floor;
    schedule->clients[client].page.job = number;
}

bool job_turn_rejoin(struct schedule *schedule, int tenant, uint32_t number, uint64_t budget, uint64_t now) {
    if (!schedule->tenants[tenant].waiting_since || has_turn(schedule, tenant)) return false;
    bool is_free = !schedule->turn.number;
    if (!is_free && schedule->called_tenant == tenant) return false;
    if (is_free)
        job_turn_begin(schedule, tenant, number, budget, false, now);
    else
        job_turn_call(schedule, tenant, now);
    return true;
}

bool job_turn_take_back(struct schedule *schedule, int tenant, uint64_t now) {
    if (!has_turn(schedule, tenant) || clients_others_wait(schedule, tenant)) return false;
    current_turn_end(schedule, now, now);
    return true;
}

void job_turn_ask_back(struct schedule *schedule, int tenant, uint64_t now) {
    const struct current_turn *turn = &schedule->turn;
    if (has_turn(schedule, tenant) && !turn->drains_at && !turn->asked_back_at)
        current_turn_ask_to_yield(schedule, now);
}
