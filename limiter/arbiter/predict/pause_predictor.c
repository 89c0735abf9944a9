#include "arbiter/predict/pause_predictor.h"

#include "arbiter/predict/arrival_predictor.h"
#include "common/arithmetic.h"

/* Pauses that are predicted. For shorter ones, keeping the card free would cost too much; longer ones come too seldom
 * to learn from. */
#define PAUSE_MIN (5 * NS_PER_MS)
#define PAUSE_MAX (1000 * NS_PER_MS)

/* How far a pause may be off: a percentage of it, at most 0.3 ms. */
#define TOLERANCE_MAX (3 * NS_PER_MS / 10)
enum { TOLERANCE_PERCENT = 3, FULL = 100 };

/* As for arrivals at intervals (arrival_predictor.c): each pause of another length takes back two that were as
 * expected. WEIGHT: of past pauses in the average. */
enum { CONFIDENT = 5, CONFIDENCE_MAX = 8, MISS_PENALTY = 2, WEIGHT = 8 };

static bool is_as_expected(const struct pause_predictor *predictor, uint64_t pause) {
    uint64_t off = pause < predictor->pause ? predictor->pause - pause : pause - predictor->pause;
    return predictor->pause && off <= min_u64(TOLERANCE_MAX, predictor->pause * TOLERANCE_PERCENT / FULL);
}

void pause_predictor_note_left(struct pause_predictor *predictor, uint64_t left_at) { predictor->left_at = left_at; }

void pause_predictor_note_arrival(struct pause_predictor *predictor, uint64_t now) {
    if (!predictor->left_at) return;
    uint64_t pause = now > predictor->left_at ? now - predictor->left_at : 0;
    predictor->left_at = 0;
    if (is_as_expected(predictor, pause)) {
        predictor->pause = (predictor->pause * (WEIGHT - 1) + pause) / WEIGHT;
        if (predictor->confidence < CONFIDENCE_MAX) predictor->confidence++;
        return;
    }
    predictor->confidence -= (uint32_t)min_u64(predictor->confidence, MISS_PENALTY);
    if (predictor->confidence == 0) predictor->pause = pause >= PAUSE_MIN && pause <= PAUSE_MAX ? pause : 0;
}

bool pause_predictor_is_confident(const struct pause_predictor *predictor) {
    return predictor->confidence >= CONFIDENT;
}

uint64_t pause_predictor_next(const struct pause_predictor *predictor, uint64_t now) {
    uint64_t expected_at = predictor->left_at + predictor->pause;
    bool is_expected = predictor->left_at && now < expected_at + ARRIVAL_GRACE;
    return is_expected && pause_predictor_is_confident(predictor) ? expected_at : 0;
}
