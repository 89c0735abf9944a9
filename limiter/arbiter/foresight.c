/* Who comes at regular moments finds the card free: the turn before is to end then, and the card is kept for it. */
#include "common/arithmetic.h"
#include "parts.h"

/* Of the card's time no more than one part in so many is kept, but for so much saved up. */
enum { KEPT_SELDOM = 32 };
#define KEPT_SAVED (2 * NS_PER_MS)

/* When so much has been kept, who makes way may have one kernel more: where kernels and moments always meet in the same
 * way, he would lose the same each time. */
#define KEPT_MUCH NS_PER_MS

/* That a tenant's client comes next, for which that other one has to make way. */
static bool is_expected(struct schedule *schedule, int tenant, int holder, uint64_t now) {
    struct tenant *one = &schedule->tenants[tenant];
    if (tenant == holder || !one->is_taken || one->waits_since || !clients_is_one(schedule, one->regular)) return false;
    if (schedule->clients[one->regular].tenant != tenant) return false;
    rhythm_pass(&one->rhythm, now);
    if (!rhythm_next(&one->rhythm)) return false;
    tenant_refill(one, now);
    return choice_makes_way(schedule, holder, tenant);
}

struct foreseen foresight_of(struct schedule *schedule, int holder, uint64_t now) {
    struct foreseen found = {.client = SCHEDULE_NONE};
    if (schedule->kept_paid > now) return found;
    for (int32_t i = 0; i < schedule->tenants_high; i++) {
        if (!is_expected(schedule, i, holder, now)) continue;
        struct foreseen one = {schedule->tenants[i].regular, rhythm_next(&schedule->tenants[i].rhythm)};
        if (found.client == SCHEDULE_NONE || one.at < found.at) found = one;
    }
    return found;
}

bool foresight_is_near(const struct schedule *schedule, const struct foreseen *foreseen, uint64_t now) {
    uint64_t free_at = max_u64(now, schedule->counted_until);
    return foreseen->client != SCHEDULE_NONE && foreseen->at <= free_at + FORESIGHT_NEAR;
}

uint64_t foresight_until(struct schedule *schedule, const struct foreseen *foreseen) {
    bool is_late = foreseen->at && schedule->kept >= KEPT_MUCH;
    if (is_late) schedule->kept = 0;
    return foreseen->at + (is_late ? ARBITRATION_KEPT_NS : 0);
}

/* What the card does not do meanwhile is the one's to pay, and the handovers that it costs the other. */
void foresight_keep(struct schedule *schedule, const struct foreseen *foreseen, uint64_t budget, uint64_t now) {
    int32_t place = schedule->clients[foreseen->client].tenant;
    tenant_return(&schedule->tenants[place], schedule->pace);
    if (clients_is_one(schedule, schedule->last)) {
        schedule->urgent = place;
        schedule->interrupted = schedule->clients[schedule->last].tenant;
    }
    holding_begin(schedule, foreseen->client, budget, 0, now);
    schedule->turn.expected_at = foreseen->at;
    schedule->turn.begins_by = max_u64(schedule->turn.began, foreseen->at + RHYTHM_GRACE);
    schedule->turn.look_at = schedule->turn.begins_by;
}

static void pay(struct schedule *schedule, uint64_t now) {
    uint64_t began = schedule->turn.began, kept = now > began ? now - began : 0;
    uint64_t saved_from = now - min_u64(now, KEPT_SAVED * KEPT_SELDOM);
    schedule->kept += kept;
    schedule->kept_paid = max_u64(schedule->kept_paid, saved_from) + kept * KEPT_SELDOM;
}

void foresight_end(struct schedule *schedule, bool has_come, uint64_t now) {
    struct holding *turn = &schedule->turn;
    if (!turn->expected_at) return;
    pay(schedule, now);
    turn->expected_at = 0;
    if (!has_come) return;
    rhythm_come(&schedule->tenants[turn->tenant].rhythm, now);
    turn->begins_by = turn->look_at = now + HOLDING_TIME_TO_BEGIN;
}
