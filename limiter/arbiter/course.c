/* The course of turns: what has become due by the clock. */
#include "allowance.h"
#include "common/arithmetic.h"
#include "parts.h"

/* The card has been idle for so long: the turn is taken. */
#define IDLE (NS_PER_MS / 10)

/* One that comes at regular moments has done what it comes for. */
#define IDLE_THROUGH (NS_PER_MS / 50)

/* Of one who was kept waiting by its betters. */
#define FLOOR_BUDGET (3 * NS_PER_MS)

#define LOOK_AGAIN   NS_PER_MS
#define LOOK_LEAST   (NS_PER_MS / 20)
#define CENSUS_EVERY (20 * NS_PER_MS)

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
    uint64_t idle = tenant_is_through(&schedule->tenants[turn->tenant], drained) ? IDLE_THROUGH : IDLE;
    uint64_t take_at = has_begun ? drained + idle : turn->begins_by;
    if (has_begun) foresight_end(schedule, true, turn->expected_at);
    if (now < take_at) {
        turn->look_at = max_u64(take_at, now + LOOK_LEAST);
        return;
    }
    foresight_end(schedule, false, now);
    holding_end(schedule, now, max_u64(drained, turn->began));
}

/* When the turn that is under way leaves the card. */
static uint64_t end_of_turn(const struct schedule *schedule) {
    uint64_t limit = holding_limit(schedule), ends_at = schedule->turn.ends_at;
    return ends_at ? min_u64(ends_at, limit) : limit;
}

/* Who alone waits for the end of its own turn has the next at once, for that is no handover; it counts from then. */
static bool is_own_successor(const struct schedule *schedule, uint64_t now) {
    const struct holding *turn = &schedule->turn;
    bool is_near = turn->ends_at && turn->ends_at <= now + turn->budget;
    bool makes_way = turn->until && turn->until <= turn->ends_at + FORESIGHT_NEAR;
    return is_near && !makes_way && schedule->waiting == 1 && schedule->clients[turn->client].is_waiting;
}

static void end_if_over(struct schedule *schedule, uint64_t now) {
    uint64_t end = end_of_turn(schedule);
    uint64_t early = schedule->turn.ends_at && schedule->waiting ? ARBITRATION_EARLY_NS : 0;
    if (is_own_successor(schedule, now) || now + early >= end)
        holding_end(schedule, max_u64(now, end), max_u64(now, end));
}

static void begin_next(struct schedule *schedule, uint64_t now) {
    struct choice choice = choice_make(schedule, now);
    if (choice.tenant == SCHEDULE_NONE) return;
    uint64_t budget = shown_budget(schedule, now);
    if (choice.is_starved) {
        schedule->floor_at = now;
        budget = min_u64(budget, FLOOR_BUDGET);
    }
    struct foreseen soon = foresight_of(schedule, choice.tenant, now);
    bool is_near = !choice.is_starved && foresight_is_near(schedule, &soon, now);
    if (is_near)
        foresight_keep(schedule, &soon, budget, now);
    else
        holding_begin(schedule, schedule->tenants[choice.tenant].first, budget, foresight_until(schedule, &soon), now);
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
    if (turn->ends_at) return end_of_turn(schedule) - (schedule->waiting ? ARBITRATION_EARLY_NS : 0);
    if (!schedule->waiting) return UINT64_MAX;
    if (!turn->number) return now + LOOK_AGAIN;
    uint64_t next = min_u64(turn->look_at, end_of_turn(schedule));
    if (turn->is_asked_to_yield) return next;
    return min_u64(next, turn->yields_at > now ? turn->yields_at : now + LOOK_AGAIN);
}

uint64_t schedule_run(struct schedule *schedule, uint64_t now) {
    holding_count(schedule, now);
    schedule->due = 0; /* whether we were late is known now */
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
