#include "compute/turn/suitable_turn.h"

#include "common/arithmetic.h"
#include "common/clock.h"

/* A host that waits for each step is usually one step ahead of the card. */
enum { TURNS_IN_BACKLOG = 2 };

/* The GPU time of a step is TURNS_IN_STEP turns long. A step is late by about one turn of the neighbour, so the steps
 * of a trainer differ by about a twelfth. Turns shorter than STEP_TURN_MIN would cost more of the card than that is
 * worth. */
enum { TURNS_IN_STEP = 12 };
#define STEP_TURN_MIN (5 * NS_PER_MS)

uint64_t suitable_turn(uint64_t backlog, uint64_t step) {
    uint64_t by_step = step ? max_u64(step / TURNS_IN_STEP, STEP_TURN_MIN) : 0;
    uint64_t by_backlog = backlog / TURNS_IN_BACKLOG;
    return by_step && by_backlog ? min_u64(by_step, by_backlog) : max_u64(by_step, by_backlog);
}
