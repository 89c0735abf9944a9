#include "compute/turn.h"

#include "common/arithmetic.h"

#define UNKNOWN  (5 * NS_PER_MS) /* what a launch is given that was never measured */
#define AGE_MOST (20 * NS_PER_MS)

enum { TELLING_LEAST = 4, DENSE_PAUSES = 8 };

/* Between a launch and its start on an idle card. */
#define LATENCY 10000ULL

struct turn turn_open(uint64_t now, struct turn_limits limits) { return (struct turn){.begun = now, .limits = limits}; }

void turn_set_free_at(struct turn *turn, uint64_t free_at) { turn->drained = free_at; }

void turn_note_start(struct turn *turn, uint64_t now) {
    if (turn->drained < now + turn->expected) turn->drained = now + turn->expected;
}

uint64_t turn_remaining(const struct turn *turn, uint64_t now) { return turn->drained > now ? turn->drained - now : 0; }

static uint64_t since_probe(const struct turn *turn) { return turn->is_probed ? turn->expected - turn->probed : 0; }

/* More may be known to be there than should be. */
static uint64_t in_flight(const struct turn *turn, uint64_t now) {
    uint64_t rest = turn_remaining(turn, now), least = since_probe(turn);
    return rest > least ? rest : least;
}

/* Rounded to the nearest kernel, half of those that come at that moment find the card free; this way four fifths do. */
static bool is_near_end(const struct turn *turn, uint64_t expected, uint64_t now) {
    uint64_t start = max_u64(turn->drained, now), least = min_u64(expected * 4 / 5, ARBITRATION_KEPT_NS);
    return turn->limits.until && start + least > turn->limits.until;
}

enum verdict turn_judge(const struct turn *turn, bool is_known, uint64_t expected, uint64_t now) {
    uint64_t budget = turn->limits.budget;
    if (turn->launches == 0) return VERDICT_FITS;
    if (now > turn->begun + turn->limits.age) return VERDICT_FULL;
    if (budget == UINT64_MAX) return VERDICT_FITS;
    if (turn->is_unknown || !is_known) return VERDICT_UNMEASURED;
    if (expected > budget || turn->expected > budget - expected) return VERDICT_FULL;
    if (is_near_end(turn, expected, now)) return VERDICT_FULL;
    return in_flight(turn, now) > turn->limits.depth ? VERDICT_DEEP : VERDICT_FITS;
}

void turn_extend(struct turn *turn, uint64_t now) {
    turn->begun = now;
    turn->limits = (struct turn_limits){.budget = UINT64_MAX, .depth = UINT64_MAX, .age = AGE_MOST};
}

/* Nobody knows how long an idle card has been idle by how late the next launch is, but for the time that a launch needs
 * to get there. */
static uint64_t idle_before(const struct turn *turn, uint64_t now) {
    if (turn->launches == 0 || turn->is_unknown || now < turn->drained + LATENCY) return 0;
    return now - turn->drained - LATENCY;
}

void turn_add(struct turn *turn, bool is_known, uint64_t expected, uint64_t now) {
    uint64_t idle = idle_before(turn, now);
    turn->idle += idle;
    turn->pauses += idle != 0;
    if (turn->drained < now) turn->drained = now;
    turn->drained += is_known ? expected : UNKNOWN;
    turn->expected += is_known ? expected : 0;
    turn->is_unknown |= !is_known;
    turn->launches++;
}

bool turn_is_to_be_probed(const struct turn *turn) { return turn->limits.depth != UINT64_MAX && !turn->is_probed; }

void turn_probe(struct turn *turn) {
    turn->is_probed = true;
    turn->probed = turn->expected;
}

void turn_apply_probe(struct turn *turn, bool is_passed, uint64_t now) {
    uint64_t drained = now + since_probe(turn);
    bool is_wrong = is_passed ? turn->drained > drained : turn->drained < drained;
    if (is_wrong) turn->drained = drained;
    if (is_passed) turn->is_probed = false;
}

/* A program that waits for each kernel, or is slower than the card, pauses before each, and where one takes longer than
 * expected that looks like a pause. What kernels take is known on average, by samples: then that is right. A few pauses
 * are those of a host that has slept, and what else was measured is nearer to the truth of this very turn. */
static bool is_dense(const struct turn *turn) { return turn->pauses * DENSE_PAUSES <= turn->launches; }

uint64_t turn_cost(const struct turn *turn, uint64_t measured, uint64_t marked) {
    if (measured == 0) return turn->expected;
    if (turn->is_unknown) return measured;
    uint64_t idle = turn->idle + (marked ? idle_before(turn, marked) : 0);
    uint64_t busy = measured > idle ? measured - idle : 0;
    return is_dense(turn) && busy ? busy : min_u64(measured, turn->expected);
}

/* Where it takes less than a launch needs to get there, half of it is as good a guess as any. */
uint64_t turn_sampled(uint64_t measured, bool is_prompt) {
    if (!is_prompt) return measured;
    return max_u64(measured / 2, measured > LATENCY ? measured - LATENCY : 0);
}

/* Alone there is nothing that takes longer together; and what is expected is not to hide what a slow host leaves out.
 */
bool turn_is_fully_informative(const struct turn *turn) { return turn->limits.depth != UINT64_MAX && is_dense(turn); }

bool turn_is_informative(const struct turn *turn) { return !turn->is_unknown && turn->launches >= TELLING_LEAST; }
