/* Predicts when a client comes back that pauses for the same time after each visit (ADR 19), as a program that sleeps
 * between requests does: its arrivals have no fixed interval, because each depends on how long the visit took. Pure:
 * the clock is an argument. All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_PREDICT_PAUSE_PREDICTOR_H
#define VGPU_ARBITER_PREDICT_PAUSE_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

/* A predictor of zeros has seen no pause. */
struct pause_predictor {
    uint64_t left_at;    /* when the last visit ended; 0 = the client is there */
    uint64_t pause;      /* between visits; 0 = unknown */
    uint32_t confidence; /* from 0 to 8; the prediction is used from 5 on */
};

/* The client left the card idle at `left_at`. */
void pause_predictor_note_left(struct pause_predictor *predictor, uint64_t left_at);

/* The client arrives now. */
void pause_predictor_note_arrival(struct pause_predictor *predictor, uint64_t now);

/* Whether the next pause is expected to be as long as the ones before. */
bool pause_predictor_is_confident(const struct pause_predictor *predictor);

/* When the client is expected back; 0 if the confidence is too low, or it should have come before `now`. */
uint64_t pause_predictor_next(const struct pause_predictor *predictor, uint64_t now);

#endif
