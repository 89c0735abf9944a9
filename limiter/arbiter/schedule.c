#include <stdlib.h>

#include "allowance.h"
#include "parts.h"

/* The next turn is given so long before the card falls free, for its work needs that to get there. */
#define EARLY (3 * TENANT_NS_PER_MS / 10)

/* The card has been idle for so long: the turn is taken. */
#define IDLE (TENANT_NS_PER_MS / 10)

/* Of one who was kept waiting by its betters. */
#define FLOOR_BUDGET (3 * TENANT_NS_PER_MS)

#define LOOK_AGAIN   TENANT_NS_PER_MS
#define LOOK_LEAST   (TENANT_NS_PER_MS / 20)
#define CENSUS_EVERY (20 * TENANT_NS_PER_MS)

/* What is left of a turn that its client is done with is no longer, whatever it says. */
#define REST_MOST (250 * TENANT_NS_PER_MS)

static uint64_t lesser(uint64_t one, uint64_t other) { return one < other ? one : other; }

static uint64_t later(uint64_t one, uint64_t other) { return one > other ? one : other; }

struct schedule *schedule_open(unsigned high, unsigned low) {
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule) return NULL;
    schedule->watermark = watermark_made(high, low);
    schedule->patience = patience_made(0);
    schedule->turn = (struct holding){.tenant = SCHEDULE_NONE, .client = SCHEDULE_NONE};
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

int schedule_add(struct schedule *schedule, const struct ask *ask, uint64_t now) {
    int place = free_place(schedule);
    if (place == SCHEDULE_NONE) return SCHEDULE_NONE;
    schedule->tenants[place] = tenant_made(ask, now);
    schedule->tenants[place].pace = schedule->tenants[place].left_pace = schedule->pace;
    return place;
}

void schedule_change(struct schedule *schedule, int tenant, const struct ask *ask, uint64_t now) {
    struct tenant *changed = &schedule->tenants[tenant];
    if (ask_is_same(&changed->ask, ask)) return;
    holding_count(schedule, now);
    tenant_refill(changed, now);
    changed->ask = *ask;
    changed->pace = changed->left_pace = schedule->pace; /* what it held was counted by another weight */
    schedule->is_stale = true;
}

void schedule_remove(struct schedule *schedule, int tenant) { schedule->tenants[tenant].is_taken = false; }

bool schedule_is_empty(const struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (schedule->tenants[i].is_taken) return false;
    return true;
}

/* It is there from now on, which those who have the card to themselves must be told. */
static void see(struct schedule *schedule, struct tenant *tenant, uint64_t now) {
    bool was_active = tenant_is_active(tenant, now);
    tenant->seen_at = now;
    if (!was_active) schedule->is_stale = true;
    if (schedule->is_stale) shown_refresh(schedule, now);
}

/* Who has the turn, and whom its page tells so, needs none. */
void schedule_want(struct schedule *schedule, int client, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[schedule->clients[client].tenant];
    bool has_turn = schedule->turn.number && schedule->turn.client == client && schedule->turn.ends_at == 0;
    holding_count(schedule, now);
    see(schedule, tenant, now);
    if (!tenant->is_contended) {
        shown_turn(schedule, client, shown_new_number(schedule), UINT64_MAX, UINT64_MAX);
        return;
    }
    if (has_turn) return;
    if (clients_is_away(schedule, tenant)) tenant_return(tenant, schedule->pace);
    clients_wait(schedule, client, now);
    holding_contest(schedule, now);
}

void schedule_done(struct schedule *schedule, int client, uint32_t number, uint64_t rest, uint64_t now) {
    struct holding *turn = &schedule->turn;
    if (schedule->clients[client].page.turn == number) shown_turn(schedule, client, 0, 0, 0);
    if (!turn->number || turn->number != number || turn->client != client) return;
    uint64_t ends_at = later(now + lesser(rest, REST_MOST), turn->began);
    if (turn->ends_at && turn->ends_at <= ends_at) return;
    holding_count(schedule, now);
    holding_finish(schedule, ends_at, now);
}

static bool is_held(const struct schedule *schedule) { return schedule->turn.number && !schedule->turn.ends_at; }

int schedule_wonders(struct schedule *schedule, uint64_t now) {
    const struct holding *turn = &schedule->turn;
    bool is_time = is_held(schedule) && schedule->waiting && turn->contested && now >= turn->look_at;
    return is_time ? turn->tenant : SCHEDULE_NONE;
}

void schedule_hear(struct schedule *schedule, uint64_t leased_until, uint64_t now) {
    struct holding *turn = &schedule->turn;
    uint64_t drained = leased_until > ARBITRATION_GRACE_NS ? leased_until - ARBITRATION_GRACE_NS : 0;
    bool has_begun = drained > turn->began;
    uint64_t take_at = has_begun ? drained + IDLE : turn->began + TENANT_NS_PER_MS;
    if (now >= take_at)
        holding_end(schedule, now, later(drained, turn->began));
    else
        turn->look_at = later(take_at, now + LOOK_LEAST);
}

/* When the turn that is under way leaves the card. */
static uint64_t end_of_turn(const struct schedule *schedule) {
    uint64_t limit = holding_limit(schedule), ends_at = schedule->turn.ends_at;
    return ends_at ? lesser(ends_at, limit) : limit;
}

/* Who alone waits for the end of its own turn has the next at once, for that is no handover; it counts from then. */
static bool is_own_successor(const struct schedule *schedule, uint64_t now) {
    const struct holding *turn = &schedule->turn;
    bool is_near = turn->ends_at && turn->ends_at <= now + turn->budget;
    return is_near && schedule->waiting == 1 && schedule->clients[turn->client].is_waiting;
}

static void end_if_over(struct schedule *schedule, uint64_t now) {
    uint64_t end = end_of_turn(schedule);
    uint64_t early = schedule->turn.ends_at && schedule->waiting ? EARLY : 0;
    if (is_own_successor(schedule, now) || now + early >= end) holding_end(schedule, later(now, end), later(now, end));
}

static void begin_next(struct schedule *schedule, uint64_t now) {
    struct choice choice = choice_make(schedule, now);
    if (choice.tenant == SCHEDULE_NONE) return;
    uint64_t budget = allowance_budget(shown_active(schedule, now));
    if (choice.is_starved) {
        schedule->floor_at = now;
        budget = lesser(budget, FLOOR_BUDGET);
    }
    holding_begin(schedule, schedule->tenants[choice.tenant].first, budget, now);
}

static void take_census(struct schedule *schedule, uint64_t now) {
    if (now >= schedule->census_at) {
        schedule->census_at = now + CENSUS_EVERY;
        schedule->is_stale |= shown_active(schedule, now) != schedule->shown_active;
    }
    if (schedule->is_stale) shown_refresh(schedule, now);
}

static uint64_t next_moment(const struct schedule *schedule, uint64_t now) {
    const struct holding *turn = &schedule->turn;
    if (turn->ends_at) return end_of_turn(schedule) - (schedule->waiting ? EARLY : 0);
    if (!schedule->waiting) return UINT64_MAX;
    if (!turn->number) return now + LOOK_AGAIN;
    uint64_t next = lesser(turn->look_at, end_of_turn(schedule));
    uint64_t yields_at = turn->is_asked_to_yield ? UINT64_MAX : turn->yields_at;
    return lesser(next, later(yields_at, now + LOOK_AGAIN));
}

uint64_t schedule_run(struct schedule *schedule, uint64_t now) {
    holding_count(schedule, now);
    watermark_run(&schedule->watermark, now);
    patience_refill(&schedule->patience, now);
    take_census(schedule, now);
    if (schedule->turn.number) end_if_over(schedule, now);
    if (!schedule->turn.number && schedule->waiting) begin_next(schedule, now);
    holding_contest(schedule, now);
    if (is_held(schedule) && schedule->waiting && !schedule->turn.is_asked_to_yield && choice_is_due(schedule, now))
        holding_ask_to_yield(schedule, now);
    schedule->due = next_moment(schedule, now);
    return schedule->due;
}

bool schedule_is_watched(const struct schedule *schedule) { return schedule->connected > 1 || schedule->waiting; }

const struct arbitration_page *schedule_page(const struct schedule *schedule, int client) {
    return &schedule->clients[client].page;
}

uint64_t schedule_held_ns(const struct schedule *schedule, int tenant) { return schedule->tenants[tenant].held_ns; }
