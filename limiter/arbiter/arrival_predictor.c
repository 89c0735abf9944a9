#include "arrival_predictor.h"

/* Requests of a service: none that come so often that making way for each would be too much, or that seldom. */
#define INTERVAL_MIN (8 * NS_PER_MS)
#define INTERVAL_MAX (1000 * NS_PER_MS)

#define TOLERANCE_MAX (3 * NS_PER_MS / 10)

/* It is relied upon after five in time; two that are not end that. */
enum { CONFIDENT = 5, CONFIDENCE_MAX = 8, MISS_PENALTY = 2, TOLERANCE_PERCENT = 3, FULL = 100 };

static uint64_t distance(uint64_t first, uint64_t second) { return first < second ? second - first : first - second; }

static bool is_on_time(const struct arrival_predictor *predictor, uint64_t now) {
    uint64_t tolerance = min_u64(TOLERANCE_MAX, predictor->interval * TOLERANCE_PERCENT / FULL);
    return predictor->interval && distance(predictor->expected_at, now) <= tolerance;
}

static void restart(struct arrival_predictor *predictor, uint64_t interval, uint64_t now) {
    bool is_possible = interval >= INTERVAL_MIN && interval <= INTERVAL_MAX;
    predictor->interval = is_possible ? interval : 0;
    predictor->expected_at = now + predictor->interval;
}

/* Half of what it was off by may be by chance, and nearly nothing of it is the interval's. */
static void track(struct arrival_predictor *predictor, uint64_t now) {
    int64_t error = (int64_t)(now - predictor->expected_at);
    predictor->interval += (uint64_t)(error / 8);
    predictor->expected_at += (uint64_t)(error / 2) + predictor->interval;
    if (predictor->confidence < CONFIDENCE_MAX) predictor->confidence++;
}

void arrival_predictor_skip_missed(struct arrival_predictor *predictor, uint64_t now) {
    if (!predictor->interval || now < predictor->expected_at + ARRIVAL_GRACE) return;
    uint64_t missed = (now - predictor->expected_at - ARRIVAL_GRACE) / predictor->interval + 1;
    predictor->expected_at += missed * predictor->interval;
    predictor->confidence -= (uint32_t)min_u64(predictor->confidence, missed * MISS_PENALTY);
}

/* Coming at another time is not missing one: where it does so again and again the moments pass, and it begins anew. */
void arrival_predictor_note_arrival(struct arrival_predictor *predictor, uint64_t now) {
    uint64_t interval = now - predictor->last_arrival_at;
    predictor->last_arrival_at = now;
    arrival_predictor_skip_missed(predictor, now);
    if (is_on_time(predictor, now))
        track(predictor, now);
    else if (predictor->confidence == 0)
        restart(predictor, interval, now);
}

uint64_t arrival_predictor_next(const struct arrival_predictor *predictor) {
    return predictor->confidence >= CONFIDENT ? predictor->expected_at : 0;
}
