/* Predicts when a client with periodic requests arrives next (ADR 19). Arrivals within a tolerance of the expected time
 * raise a confidence score, missed ones lower it. Pure: the clock is an argument. All times are in ns; points in time
 * are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_PREDICT_ARRIVAL_PREDICTOR_H
#define VGPU_ARBITER_PREDICT_ARRIVAL_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arithmetic.h"

/* An arrival counts as missed when it is this late. */
#define ARRIVAL_GRACE (NS_PER_MS / 5)

/* A predictor of zeros has seen no arrival. */
struct arrival_predictor {
    uint64_t last_arrival_at;
    uint64_t expected_at; /* the next arrival */
    uint64_t interval;    /* between arrivals; 0 = unknown */
    uint32_t confidence;  /* from 0 to 8; the prediction is used from 5 on */
};

/* The client arrives now. */
void arrival_predictor_note_arrival(struct arrival_predictor *predictor, uint64_t now);

/* Counts every expected arrival that is past its grace as missed, and moves on to the next. */
void arrival_predictor_skip_missed(struct arrival_predictor *predictor, uint64_t now);

/* When the next arrival is expected; 0 if the confidence is too low. */
uint64_t arrival_predictor_next(const struct arrival_predictor *predictor);

#endif
