#include "compute/turn.h"

#include "common/arithmetic.h"

#define UNKNOWN_ESTIMATE (5 * NS_PER_MS) /* what a launch is given that was never measured */
#define EXTENDED_AGE     (20 * NS_PER_MS)

enum { INFORMATIVE_LAUNCHES = 4, LAUNCHES_PER_GAP = 8 };

/* Between a launch and its start on an idle card. */
#define LAUNCH_LATENCY 10000ULL

struct turn turn_open(uint64_t now, struct turn_limits limits) {
    return (struct turn){.begun_at = now, .limits = limits};
}

void turn_set_free_at(struct turn *turn, uint64_t free_at) { turn->drained_at = free_at; }

void turn_note_start(struct turn *turn, uint64_t now) {
    if (turn->drained_at < now + turn->expected) turn->drained_at = now + turn->expected;
}

uint64_t turn_remaining(const struct turn *turn, uint64_t now) {
    return turn->drained_at > now ? turn->drained_at - now : 0;
}

static uint64_t since_probe(const struct turn *turn) {
    return turn->is_probe_pending ? turn->expected - turn->expected_at_probe : 0;
}

/* More may be known to be there than should be. */
static uint64_t in_flight(const struct turn *turn, uint64_t now) {
    uint64_t rest = turn_remaining(turn, now), least = since_probe(turn);
    return rest > least ? rest : least;
}

/* Rounded to the nearest kernel, half of those that come at that moment find the card free; this way four fifths do. */
static bool is_near_end(const struct turn *turn, uint64_t expected, uint64_t now) {
    uint64_t start = max_u64(turn->drained_at, now), least = min_u64(expected * 4 / 5, ARBITRATION_KEPT_NS);
    return turn->limits.end_by && start + least > turn->limits.end_by;
}

enum verdict turn_judge(const struct turn *turn, bool is_known, uint64_t expected, uint64_t now) {
    uint64_t budget = turn->limits.budget;
    if (turn->launches == 0) return VERDICT_FITS;
    if (now > turn->begun_at + turn->limits.age) return VERDICT_FULL;
    if (budget == UINT64_MAX) return VERDICT_FITS;
    if (turn->is_unknown || !is_known) return VERDICT_UNMEASURED;
    if (expected > budget || turn->expected > budget - expected) return VERDICT_FULL;
    if (is_near_end(turn, expected, now)) return VERDICT_FULL;
    return in_flight(turn, now) > turn->limits.depth ? VERDICT_TOO_DEEP : VERDICT_FITS;
}

void turn_extend(struct turn *turn, uint64_t now) {
    turn->begun_at = now;
    turn->limits = (struct turn_limits){.budget = UINT64_MAX, .depth = UINT64_MAX, .age = EXTENDED_AGE};
}

/* Nobody knows how long an idle card has been idle by how late the next launch is, but for the time that a launch needs
 * to get there. */
static uint64_t idle_before(const struct turn *turn, uint64_t now) {
    if (turn->launches == 0 || turn->is_unknown || now < turn->drained_at + LAUNCH_LATENCY) return 0;
    return now - turn->drained_at - LAUNCH_LATENCY;
}

void turn_add(struct turn *turn, bool is_known, uint64_t expected, uint64_t now) {
    uint64_t idle = idle_before(turn, now);
    turn->idle_ns += idle;
    turn->idle_gaps += idle != 0;
    if (turn->drained_at < now) turn->drained_at = now;
    turn->drained_at += is_known ? expected : UNKNOWN_ESTIMATE;
    turn->expected += is_known ? expected : 0;
    turn->is_unknown |= !is_known;
    turn->launches++;
}

bool turn_is_to_be_probed(const struct turn *turn) {
    return turn->limits.depth != UINT64_MAX && !turn->is_probe_pending;
}

void turn_probe(struct turn *turn) {
    turn->is_probe_pending = true;
    turn->expected_at_probe = turn->expected;
}

void turn_apply_probe(struct turn *turn, bool is_passed, uint64_t now) {
    uint64_t drained = now + since_probe(turn);
    bool is_wrong = is_passed ? turn->drained_at > drained : turn->drained_at < drained;
    if (is_wrong) turn->drained_at = drained;
    if (is_passed) turn->is_probe_pending = false;
}

/* A program that waits for each kernel, or is slower than the card, pauses before each, and where one takes longer than
 * expected that looks like a pause. What kernels take is known on average, by samples: then that is right. A few pauses
 * are those of a host that has slept, and what else was measured is nearer to the truth of this very turn. */
static bool is_device_bound(const struct turn *turn) { return turn->idle_gaps * LAUNCHES_PER_GAP <= turn->launches; }

uint64_t turn_cost(const struct turn *turn, uint64_t measured, uint64_t ends_recorded_at) {
    if (measured == 0) return turn->expected;
    if (turn->is_unknown) return measured;
    uint64_t idle = turn->idle_ns + (ends_recorded_at ? idle_before(turn, ends_recorded_at) : 0);
    uint64_t busy = measured > idle ? measured - idle : 0;
    return is_device_bound(turn) && busy ? busy : min_u64(measured, turn->expected);
}

/* Where it takes less than a launch needs to get there, half of it is as good a guess as any. */
uint64_t turn_sampled(uint64_t measured, bool is_stream_idle) {
    if (!is_stream_idle) return measured;
    return max_u64(measured / 2, measured > LAUNCH_LATENCY ? measured - LAUNCH_LATENCY : 0);
}

/* Alone there is nothing that takes longer together; and what is expected is not to hide what a slow host leaves out.
 */
bool turn_is_fully_informative(const struct turn *turn) {
    return turn->limits.depth != UINT64_MAX && is_device_bound(turn);
}

bool turn_is_informative(const struct turn *turn) {
    return !turn->is_unknown && turn->launches >= INFORMATIVE_LAUNCHES;
}
