#include "turn.h"

#define NS_PER_MS  1000000ULL
#define BUDGET     (5 * NS_PER_MS)
#define CYCLE_MOST (18 * NS_PER_MS)
#define AGE_MOST   (20 * NS_PER_MS)

enum { FULL = 100, DENSE_LEAST = 4 };

/* Between a launch and its start on an idle card. */
#define LATENCY 10000ULL

static uint64_t budget(unsigned share) {
    uint64_t fits = CYCLE_MOST * share / FULL;
    if (share == 0) return UINT64_MAX;
    return fits < BUDGET ? fits : BUDGET;
}

struct turn turn_open(uint64_t now, unsigned share) { return (struct turn){.begun = now, .budget = budget(share)}; }

bool turn_fits(const struct turn *turn, bool is_known, uint64_t expected, uint64_t now) {
    if (turn->launches == 0) return true;
    if (now > turn->begun + AGE_MOST) return false;
    if (turn->budget == UINT64_MAX) return true;
    if (turn->is_unknown || !is_known) return false;
    return expected <= turn->budget && turn->expected <= turn->budget - expected;
}

void turn_stretch(struct turn *turn, uint64_t now) {
    turn->begun = now;
    turn->budget = UINT64_MAX;
}

/* Nobody knows how long an idle card has been idle by how late the next launch is, but for the time that a launch needs
 * to get there. */
static uint64_t idle_before(const struct turn *turn, uint64_t now) {
    if (turn->launches == 0 || turn->is_unknown || now < turn->drained + LATENCY) return 0;
    return now - turn->drained - LATENCY;
}

void turn_add(struct turn *turn, bool is_known, uint64_t expected, uint64_t now) {
    turn->idle += idle_before(turn, now);
    if (turn->drained < now) turn->drained = now;
    turn->drained += is_known ? expected : BUDGET;
    turn->expected += is_known ? expected : 0;
    turn->is_unknown |= !is_known;
    turn->launches++;
}

uint64_t turn_cost(const struct turn *turn, uint64_t measured, uint64_t marked) {
    if (measured == 0) return turn->expected;
    uint64_t idle = turn->idle + (marked ? idle_before(turn, marked) : 0);
    uint64_t least = measured < turn->expected ? measured : turn->expected;
    uint64_t busy = measured > idle ? measured - idle : 0;
    return busy > least ? busy : least;
}

bool turn_tells(const struct turn *turn, uint64_t cost) {
    bool is_dense = turn->idle == 0 || cost > turn->expected;
    return is_dense && !turn->is_unknown && turn->launches >= DENSE_LEAST;
}
