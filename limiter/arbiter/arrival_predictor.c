#include "arrival_predictor.h"

/* Requests of a service: none that come so often that making way for each would be too much, or that seldom. */
#define INTERVAL_LEAST (8 * NS_PER_MS)
#define INTERVAL_MOST  (1000 * NS_PER_MS)

#define OFF_MOST (3 * NS_PER_MS / 10)

/* It is relied upon after five in time; two that are not end that. */
enum { STEADY = 5, STEADY_MOST = 8, MISS = 2, PERCENT_OFF = 3, FULL = 100 };

static uint64_t distance(uint64_t one, uint64_t other) { return one < other ? other - one : one - other; }

static bool is_on_time(const struct arrival_predictor *predictor, uint64_t now) {
    uint64_t off_most = min_u64(OFF_MOST, predictor->interval * PERCENT_OFF / FULL);
    return predictor->interval && distance(predictor->next, now) <= off_most;
}

static void begin_anew(struct arrival_predictor *predictor, uint64_t since, uint64_t now) {
    bool is_possible = since >= INTERVAL_LEAST && since <= INTERVAL_MOST;
    predictor->interval = is_possible ? since : 0;
    predictor->next = now + predictor->interval;
}

/* Half of what it was off by may be by chance, and nearly nothing of it is the interval's. */
static void follow(struct arrival_predictor *predictor, uint64_t now) {
    int64_t off = (int64_t)(now - predictor->next);
    predictor->interval += (uint64_t)(off / 8);
    predictor->next += (uint64_t)(off / 2) + predictor->interval;
    if (predictor->steady < STEADY_MOST) predictor->steady++;
}

void arrival_predictor_skip_missed(struct arrival_predictor *predictor, uint64_t now) {
    if (!predictor->interval || now < predictor->next + ARRIVAL_GRACE) return;
    uint64_t passed = (now - predictor->next - ARRIVAL_GRACE) / predictor->interval + 1;
    predictor->next += passed * predictor->interval;
    predictor->steady -= (uint32_t)min_u64(predictor->steady, passed * MISS);
}

/* Coming at another time is not missing one: where it does so again and again the moments pass, and it begins anew. */
void arrival_predictor_note_arrival(struct arrival_predictor *predictor, uint64_t now) {
    uint64_t since = now - predictor->last;
    predictor->last = now;
    arrival_predictor_skip_missed(predictor, now);
    if (is_on_time(predictor, now))
        follow(predictor, now);
    else if (predictor->steady == 0)
        begin_anew(predictor, since, now);
}

uint64_t arrival_predictor_next(const struct arrival_predictor *predictor) {
    return predictor->steady >= STEADY ? predictor->next : 0;
}
