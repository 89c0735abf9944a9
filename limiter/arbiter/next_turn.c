#include "next_turn.h"

#include "ranking.h"
#include "schedule_state.h"
#include "tenant.h"
#include "watermark.h"

/* Classes are strict, but for a turn in so long a time. */
#define FLOOR_EVERY (300 * NS_PER_MS)

/* Who was kept waiting by its betters catches up with others of its rank by no more. */
#define BEHIND_MOST (1000 * NS_PER_MS)

static bool has_room(const struct schedule *schedule) { return watermark_has_room(&schedule->watermark); }

static bool waits(const struct tenant *tenant) { return tenant->is_taken && tenant->waits_since != 0; }

static void bring_up(struct schedule *schedule, struct tenant *tenant, uint64_t now) {
    tenant_refill(tenant, now);
    tenant_bound_lag(tenant, schedule->virtual_time, tenant_virtual_time(BEHIND_MOST, FULL_CORES));
}

static int best(struct schedule *schedule, uint64_t now) {
    int found = SCHEDULE_NONE;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        struct tenant *tenant = &schedule->tenants[i];
        if (!waits(tenant)) continue;
        bring_up(schedule, tenant, now);
        if (ranking_class(tenant, has_room(schedule)) == CLASS_OVER_WATERMARK) continue;
        if (found == SCHEDULE_NONE || ranking_is_before(tenant, &schedule->tenants[found], has_room(schedule)))
            found = i;
    }
    return found;
}

/* What a fixed share lacks because it held more than is its due, it has had. */
static bool is_starved(const struct schedule *schedule, const struct tenant *tenant, uint64_t now) {
    enum class class = ranking_class(tenant, has_room(schedule));
    return waits(tenant) && class != CLASS_WITHIN_GUARANTEE && class != CLASS_OVER_FIXED_SHARE &&
           tenant->waits_since + FLOOR_EVERY <= now;
}

static int most_starved(const struct schedule *schedule, uint64_t now) {
    int found = SCHEDULE_NONE;
    if (schedule->floor_at + FLOOR_EVERY > now) return found;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *tenant = &schedule->tenants[i];
        if (!is_starved(schedule, tenant, now)) continue;
        if (found == SCHEDULE_NONE || tenant->waits_since < schedule->tenants[found].waits_since) found = i;
    }
    return found;
}

struct next_turn next_turn_choose(struct schedule *schedule, uint64_t now) {
    int starved = most_starved(schedule, now);
    if (starved != SCHEDULE_NONE) return (struct next_turn){starved, true};
    return (struct next_turn){best(schedule, now), false};
}

/* A handover for it alone is worth while only where it is behind what it was promised, or the other has no claim. */
static bool outweighs(const struct schedule *schedule, const struct tenant *waiting, const struct tenant *holding) {
    bool room = has_room(schedule);
    if (!tenant_is_latency_sensitive(waiting) || ranking_outranks(holding, waiting, room)) return false;
    return ranking_class(waiting, room) == CLASS_WITHIN_GUARANTEE || ranking_outranks(waiting, holding, room);
}

/* Two that are in a hurry let each other be done. */
static bool is_urgent(const struct schedule *schedule, const struct tenant *waiting, const struct tenant *holding,
                      uint64_t now) {
    if (tenant_is_latency_sensitive(holding) && now < schedule->turn.began + TENANT_SHORT) return false;
    return waiting != holding && outweighs(schedule, waiting, holding);
}

bool next_turn_would_preempt(const struct schedule *schedule, int one, int other) {
    const struct tenant *holding = &schedule->tenants[one];
    return !tenant_is_latency_sensitive(holding) && outweighs(schedule, &schedule->tenants[other], holding);
}

bool next_turn_is_due(struct schedule *schedule, uint64_t now) {
    struct tenant *holding = &schedule->tenants[schedule->turn.tenant];
    struct next_turn choice = next_turn_choose(schedule, now);
    if (choice.tenant == SCHEDULE_NONE) return false;
    const struct tenant *waiting = &schedule->tenants[choice.tenant];
    bring_up(schedule, holding, now);
    if (is_urgent(schedule, waiting, holding, now)) {
        schedule->urgent = choice.tenant;
        schedule->interrupted = schedule->turn.tenant;
        return true;
    }
    if (now < schedule->turn.yields_at) return false;
    return choice.is_starved || waiting == holding || !ranking_is_before(holding, waiting, has_room(schedule));
}

bool next_turn_needs_no_end(const struct schedule *schedule, int tenant) {
    const struct tenant *one = &schedule->tenants[tenant];
    if (one->demand.policy == POLICY_BEST_EFFORT && watermark_is_tight(&schedule->watermark)) return false;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *other = &schedule->tenants[i];
        if (waits(other) && (other == one || !ranking_outranks(one, other, has_room(schedule)))) return false;
    }
    return true;
}

bool next_turn_is_urgent_for_others(const struct schedule *schedule, int tenant, uint64_t now) {
    bool is_lent = schedule->tenants[tenant].demand.policy == POLICY_BEST_EFFORT;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        const struct tenant *other = &schedule->tenants[i];
        if (i == tenant || !other->is_taken || !other->clients) continue;
        bool has_claim = other->demand.guarantee > 0 || is_lent;
        if (has_claim && tenant_is_latency_sensitive(other) && tenant_is_active(other, now)) return true;
    }
    return false;
}
