/* When one that comes at regular moments comes next. Pure: the clock is an argument, in ns. */
#ifndef VGPU_ARBITER_ARRIVAL_PREDICTOR_H
#define VGPU_ARBITER_ARRIVAL_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arithmetic.h"

/* So much later than expected it still comes on time. */
#define ARRIVAL_GRACE (NS_PER_MS / 5)

struct arrival_predictor {
    uint64_t last_arrival_at; /* when it came last */
    uint64_t expected_at;     /* when it is expected */
    uint64_t interval;        /* 0: not known */
    uint32_t confidence;      /* how surely it comes then */
};

/* It comes. */
void arrival_predictor_note_arrival(struct arrival_predictor *predictor, uint64_t now);

/* What it was expected at and did not come is passed over. */
void arrival_predictor_skip_missed(struct arrival_predictor *predictor, uint64_t now);

/* When it comes next; 0: nobody knows. */
uint64_t arrival_predictor_next(const struct arrival_predictor *predictor);

#endif
