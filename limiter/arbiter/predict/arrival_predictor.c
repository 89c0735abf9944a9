#include "arbiter/predict/arrival_predictor.h"

/* Intervals that are predicted: 1 to 125 requests a second. For more frequent arrivals, keeping the card free would
 * cost too much; rarer ones come too seldom to learn from. */
#define INTERVAL_MIN (8 * NS_PER_MS)
#define INTERVAL_MAX (1000 * NS_PER_MS)

/* How far an arrival on time may be off: a percentage of the interval, at most 0.3 ms. */
#define TOLERANCE_MAX (3 * NS_PER_MS / 10)
enum { TOLERANCE_PERCENT = 3, FULL = 100 };

/* CONFIDENT: arrivals on time before predictions are used. Each missed arrival takes MISS_PENALTY of them back, so at
 * full confidence the second miss in a row ends the predictions. */
enum { CONFIDENT = 5, CONFIDENCE_MAX = 8, MISS_PENALTY = 2 };

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

/* A phase-locked loop: half of the error counts as jitter, half shifts the phase, and an eighth changes the
 * interval. */
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

/* An arrival at another time is not a miss. If arrivals keep coming at other times, the expected ones are missed, the
 * confidence falls to 0, and the predictor restarts with the latest interval. */
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
