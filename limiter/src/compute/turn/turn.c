#include "compute/turn/turn.h"

#include "common/arithmetic.h"

/* The assumed GPU time of a launch without an estimate. */
#define UNKNOWN_ESTIMATE (5 * NS_PER_MS)

/* How much longer than its estimates an interrupted turn takes: one or two of the card's time slices. */
#define SLICES_MIN (1 * NS_PER_MS)
#define SLICES_MAX (5 * NS_PER_MS)

/* How long turn_extend keeps a turn open. */
#define EXTENDED_AGE (20 * NS_PER_MS)

/* How much later than estimated work may drain before it is taken to wait for something. A kernel without an estimate
 * that waits is on the card for this long. */
#define DRAIN_SLACK (2 * NS_PER_MS)

/* A time slice of the card's. */
#define SLICE (2 * NS_PER_MS)

/* Estimates may be those of kernels that waited until their own timeout, which is 0.1 s in XLA: of estimates up to
 * WAITING_MAX, which are at least those, DRAIN_MAX counts. Longer kernels are taken to work as long as they take. */
#define DRAIN_MAX   (50 * NS_PER_MS)
#define WAITING_MAX (150 * NS_PER_MS)

/* INFORMATIVE_LAUNCHES: fewer launches say too little about how launches overlap. LAUNCHES_PER_GAP: see
 * is_device_bound. LATE_DIVISOR: a turn may end this part of its budget late; estimates are never exact. */
enum { INFORMATIVE_LAUNCHES = 4, LAUNCHES_PER_GAP = 8, LATE_DIVISOR = 16 };

/* From a launch to the start of its kernel on an idle card, in ns. */
#define LAUNCH_LATENCY 10000ULL

struct turn turn_open(uint64_t now, struct turn_limits limits) {
    return (struct turn){.begun_at = now, .limits = limits};
}

void turn_set_free_at(struct turn *turn, uint64_t free_at) { turn->drains_at = turn->free_at = free_at; }

uint64_t turn_free_at(const struct turn *turn) { return turn->free_at; }

void turn_bound_drain(struct turn *turn, uint64_t least, uint64_t most) {
    turn->drains_at = min_u64(max_u64(turn->drains_at, least), most);
}

void turn_note_start(struct turn *turn, uint64_t now) {
    if (turn->drains_at < now + turn->expected) turn->drains_at = now + turn->expected;
}

void turn_note_busy(struct turn *turn, uint64_t now) { turn->drains_at = max_u64(turn->drains_at, now); }

uint64_t turn_remaining(const struct turn *turn, uint64_t now) {
    return turn->drains_at > now ? turn->drains_at - now : 0;
}

static uint64_t since_probe(const struct turn *turn) {
    return turn->is_probe_pending ? turn->expected - turn->expected_at_probe : 0;
}

/* While a probe is pending, at least the launches after it are in flight, even if the estimates say less. */
static uint64_t in_flight(const struct turn *turn, uint64_t now) {
    uint64_t rest = turn_remaining(turn, now), least = since_probe(turn);
    return rest > least ? rest : least;
}

/* Whether a kernel would start too late before the turn's end time, at which an arrival is expected: fewer than four
 * fifths of its time, and less than 0.4 ms, would pass before that. At most one arrival in five then finds the last
 * kernel still on the card (ADR 19). */
static bool is_near_end(const struct turn *turn, uint64_t estimate, uint64_t now) {
    uint64_t start = max_u64(turn->drains_at, now),
             least = min_u64(estimate * 4 / 5, ARBITRATION_IDLE_BEFORE_ARRIVAL_MAX_NS);
    return turn->limits.end_by && start + least > turn->limits.end_by;
}

enum verdict turn_judge(const struct turn *turn, bool is_known, uint64_t estimate, uint64_t now) {
    uint64_t budget = turn->limits.budget;
    if (turn->launches == 0) return VERDICT_FITS;
    if (early_launches_are_any(&turn->early) && budget != UINT64_MAX)
        return early_launches_fit(&turn->early, is_known, estimate, now) ? VERDICT_FITS : VERDICT_FULL;
    if (now > turn->begun_at + turn->limits.age) return VERDICT_FULL;
    if (budget == UINT64_MAX) return VERDICT_FITS;
    if (turn->is_unknown || !is_known) return VERDICT_UNMEASURED;
    if (estimate > budget || turn->expected > budget - estimate) return VERDICT_FULL;
    if (is_near_end(turn, estimate, now)) return VERDICT_FULL;
    return in_flight(turn, now) > turn->limits.depth ? VERDICT_TOO_DEEP : VERDICT_FITS;
}

bool turn_is_late(const struct turn *turn, uint64_t estimate, uint64_t now) {
    uint64_t budget = turn->limits.budget;
    if (turn->launches == 0 || budget == UINT64_MAX) return false;
    uint64_t begins_at = max_u64(turn->free_at, turn->begun_at);
    return max_u64(turn->drains_at, now) + estimate > begins_at + budget + budget / LATE_DIVISOR;
}

/* Between turns of others, work that another container has left on the card takes every second time slice. If launches
 * went early although nothing waited for them, the card has more slices of others than that. */
uint64_t turn_drain_due_at(const struct turn *turn, uint64_t since) {
    bool may_have_slices = turn->limits.depth != UINT64_MAX;
    bool may_wait = early_launches_may_be_awaited(&turn->early);
    bool was_for_nothing = early_launches_are_any(&turn->early) && !may_wait && turn->early.is_beside;
    uint64_t rest = turn->is_unknown || may_wait ? 0 : turn_remaining(turn, since);
    uint64_t longest = may_have_slices ? 2 * rest + SLICE : rest;
    return since + (rest > WAITING_MAX ? longest : min_u64(longest, DRAIN_MAX)) +
           (was_for_nothing ? DRAIN_MAX : DRAIN_SLACK);
}

void turn_lend(struct turn *turn, uint64_t loan, uint64_t now) {
    early_launches_lend(&turn->early, loan, turn->launches, turn->expected, now);
}

void turn_extend(struct turn *turn, uint64_t now) {
    turn->begun_at = now;
    turn->limits = (struct turn_limits){.budget = UINT64_MAX, .depth = UINT64_MAX, .age = EXTENDED_AGE};
}

/* How long the card is expected to have been idle before a launch at `now`. A gap shorter than LAUNCH_LATENCY cannot
 * be told from a launch that is on its way, so that much is not counted. */
static uint64_t idle_before(const struct turn *turn, uint64_t now) {
    if (turn->launches == 0 || turn->is_unknown || now < turn->drains_at + LAUNCH_LATENCY) return 0;
    return now - turn->drains_at - LAUNCH_LATENCY;
}

void turn_note_drained(struct turn *turn, uint64_t now) {
    turn->idle_ns += idle_before(turn, now);
    turn->drains_at = max_u64(turn->drains_at, now);
}

void turn_add(struct turn *turn, bool is_known, uint64_t estimate, uint64_t now) {
    uint64_t idle = idle_before(turn, now);
    turn->idle_ns += idle;
    turn->idle_gaps += idle != 0;
    if (turn->drains_at < now) turn->drains_at = now;
    turn->drains_at += is_known ? estimate : UNKNOWN_ESTIMATE;
    turn->expected += is_known ? estimate : 0;
    turn->is_unknown |= !is_known;
    turn->launches++;
    if (early_launches_are_any(&turn->early)) early_launches_add(&turn->early, is_known, estimate);
}

uint64_t turn_uncharged(const struct turn *turn) { return turn->expected - turn->charged; }

uint64_t turn_renew(struct turn *turn, uint64_t now) {
    uint64_t done = saturating_sub(turn_uncharged(turn), turn_remaining(turn, now));
    turn->begun_at = now;
    turn->charged += done;
    turn->idle_ns = turn->idle_gaps = 0;
    return done;
}

/* They were launched lately, and the card may have been idle between them. */
void turn_add_passed(struct turn *turn, unsigned launches, uint64_t used_ns, uint64_t now) {
    turn->drains_at = max_u64(turn->drains_at + used_ns, now);
    turn->expected += used_ns;
    turn->launches += launches;
}

bool turn_is_to_be_probed(const struct turn *turn) {
    return turn->limits.depth != UINT64_MAX && !turn->is_probe_pending;
}

void turn_note_probe(struct turn *turn) {
    turn->is_probe_pending = true;
    turn->expected_at_probe = turn->expected;
}

void turn_apply_probe(struct turn *turn, bool is_passed, uint64_t now) {
    uint64_t drained = now + since_probe(turn);
    bool is_wrong = is_passed ? turn->drains_at > drained : turn->drains_at < drained;
    if (is_wrong) turn->drains_at = drained;
    if (is_passed) turn->is_probe_pending = false;
}

/* Whether the card was rarely idle: before at most one launch in eight. A program that waits for each kernel, or
 * launches more slowly than the card works, has a gap before almost every launch; a kernel that takes longer than its
 * estimate then looks like a longer gap, so the estimates, which are right on average, are the better charge. With few
 * gaps, the measured time without the gaps is closer to what this turn has used. */
static bool is_device_bound(const struct turn *turn) { return turn->idle_gaps * LAUNCHES_PER_GAP <= turn->launches; }

void turn_note_waited(struct turn *turn, uint64_t ns) { turn->waited_ns = ns; }

uint64_t turn_worked(const struct turn *turn, uint64_t measured) { return saturating_sub(measured, turn->waited_ns); }

/* Work whose stream waits drains later than expected, so what seemed to be idle time after that may have been work. */
static uint64_t least_cost(const struct turn *turn, uint64_t measured) {
    return turn->waited_ns ? min_u64(turn_worked(turn, measured), turn->expected) : 0;
}

uint64_t turn_cost(const struct turn *turn, uint64_t measured, uint64_t ends_recorded_at) {
    if (measured == 0) return turn->expected;
    if (early_launches_are_any(&turn->early)) return early_launches_cost(&turn->early, turn_worked(turn, measured));
    if (turn->is_unknown) return turn_worked(turn, measured);
    uint64_t unlaunched = turn->idle_ns + (ends_recorded_at ? idle_before(turn, ends_recorded_at) : 0);
    uint64_t busy = saturating_sub(measured, max_u64(unlaunched, turn->waited_ns));
    uint64_t cost = is_device_bound(turn) && busy ? busy : min_u64(measured, turn->expected);
    return max_u64(cost, least_cost(turn, measured));
}

bool turn_is_interrupted(const struct turn *turn, uint64_t measured) {
    bool may_be = turn->limits.depth != UINT64_MAX && !turn->is_unknown && !early_launches_are_any(&turn->early);
    uint64_t known = turn->expected + max_u64(turn->idle_ns, turn->waited_ns);
    return may_be && measured > known + SLICES_MIN && measured < known + SLICES_MAX;
}

/* A sample shorter than LAUNCH_LATENCY is estimated as half of its measured time. */
uint64_t turn_sampled(uint64_t measured, bool is_stream_idle) {
    if (!is_stream_idle) return measured;
    return max_u64(measured / 2, measured > LAUNCH_LATENCY ? measured - LAUNCH_LATENCY : 0);
}

/* Without other containers, launches do not take longer together than one by one. A longer time then shows a slow host,
 * and would raise the estimates so that later gaps stay hidden. */
bool turn_is_fully_informative(const struct turn *turn) {
    return turn->limits.depth != UINT64_MAX && is_device_bound(turn);
}

bool turn_is_informative(const struct turn *turn) {
    return !turn->is_unknown && !turn->is_doubtful && !early_launches_are_any(&turn->early) && !turn->limits.is_joint &&
           turn->launches >= INFORMATIVE_LAUNCHES;
}
