#include "compute/gate_turns.h"

#include <sys/prctl.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/nocancel.h"
#include "compute/estimates.h"
#include "compute/turn.h"
#include "compute/turn_events.h"
#include "compute/turn_request.h"
#include "region/activity.h"

/* How long the end of a turn waits for its work to drain. Doubled after each timeout in a row, up to 64 s: a kernel may
 * be waiting for a later launch of this process, which waits here, or it may only be long. */
#define DRAIN_TIMEOUT     (1000 * NS_PER_MS)
#define DRAIN_TIMEOUT_MAX (64 * DRAIN_TIMEOUT)

/* Shortest and longest poll interval while a thread waits for the drain, or for room in the turn. */
#define POLL_MIN (20 * NS_PER_US)
#define POLL_MAX (1 * NS_PER_MS)

/* Longest wait for a thread that opens or closes the turn, before the state is looked at again. */
#define TRANSITION_POLL (10 * NS_PER_MS)

/* A card that has been idle for this long at the end of a turn belongs to a host-bound program: one that launches
 * little and often waits. */
#define HOST_BOUND_GAP (100 * NS_PER_US)

/* Polls slowly while the drain is more than 2 ms off, then fast. */
static void sleep_until_next_poll(uint64_t drained) {
    bool is_far_off = drained > clock_now() + 2 * POLL_MAX;
    nocancel_sleep(is_far_off ? POLL_MAX : POLL_MIN);
}

static bool await_drain(const struct gate *gate, uint64_t until) {
    while (!turn_events_are_done(&gate->events)) {
        if (clock_now() > until) return false;
        sleep_until_next_poll(gate->turn.drains_at);
    }
    return true;
}

static void learn_estimates(struct gate *gate, uint64_t measured) {
    bool is_stream_idle = false;
    uint64_t sampled = turn_events_sampled_ns(&gate->events, &is_stream_idle);
    if (sampled) estimates_learn(&gate->estimates, gate->sample_key, turn_sampled(sampled, is_stream_idle));
    if (measured && turn_is_informative(&gate->turn))
        estimates_fit(&gate->estimates, gate->turn.expected, measured, turn_is_fully_informative(&gate->turn));
}

static uint64_t drain_timeout(const struct gate *gate) {
    uint64_t expected = 2 * gate->turn.expected;
    uint64_t backed_off = DRAIN_TIMEOUT << (gate->drain_timeouts < 6 ? gate->drain_timeouts : 6);
    if (expected > DRAIN_TIMEOUT_MAX) return DRAIN_TIMEOUT_MAX;
    return expected > backed_off ? expected : backed_off;
}

/* If the work did not drain in time, or the driver gives no figure, the whole time since the turn began is charged. */
static uint64_t measure_cost(struct gate *gate, uint64_t ends_recorded_at) {
    uint64_t since = clock_now();
    bool is_done = await_drain(gate, since + drain_timeout(gate));
    activity_count_wait(gate->request.activity, REGION_WAIT_DRAIN, clock_now() - since);
    gate->drain_timeouts = is_done ? 0 : gate->drain_timeouts + 1;
    if (!is_done) return clock_now() - gate->turn.begun_at;
    uint64_t measured = turn_events_measured_ns(&gate->events);
    uint64_t cost = turn_cost(&gate->turn, measured, ends_recorded_at);
    learn_estimates(gate, measured);
    return cost ? cost : clock_now() - gate->turn.begun_at;
}

static bool is_host_bound_now(const struct gate *gate) {
    uint64_t now = clock_now();
    return gate->request.arbiter_turn.number != 0 && !gate->turn.is_unknown &&
           now > gate->turn.drains_at + HOST_BOUND_GAP;
}

/* Whether the turn is charged by its estimates, without end events: the program is host-bound, so the work of its turn
 * is long done, and an end event that is recorded now would run in the turn of the next holder and take the card from
 * it. */
static bool is_known_drained(const struct gate *gate) {
    return gate->is_host_bound && turn_request_is_asked_to_yield(&gate->request) &&
           turn_events_has_unrecorded_end(&gate->events, NULL);
}

/* If the card has begun later than expected, the drain time that the arbiter is told would be too early, and the error
 * would grow from turn to turn. So the start is waited for, and the drain time corrected. */
static void await_start(struct gate *gate) {
    bool has_waited = false;
    while (clock_now() < gate->turn.drains_at && !turn_events_have_begun(&gate->events)) {
        has_waited = true;
        nocancel_sleep(POLL_MIN);
    }
    if (has_waited) turn_note_start(&gate->turn, clock_now());
}

/* Tells the arbiter when the work will drain, before it has: then the work of the next holder is queued when the card
 * is free. If the turn contains a launch without an estimate, its drain time is unknown and the work is waited for
 * first. */
static void give_back(struct gate *gate, bool is_arbiter_turn_kept) {
    if (is_arbiter_turn_kept && !turn_request_is_asked_to_yield(&gate->request)) return;
    if (gate->request.arbiter_turn.number && gate->turn.is_unknown) await_drain(gate, clock_now() + DRAIN_TIMEOUT);
    if (gate->request.arbiter_turn.number && !gate->turn.is_unknown) await_start(gate);
    turn_request_give_back(&gate->request, turn_remaining(&gate->turn, clock_now()));
    turn_request_ask_next(&gate->request, gate->turn.expected);
}

/* A launch that stays in the driver may be waiting for another launch of this process, so the turn is extended instead
 * of closed. */
static enum phase close_turn(struct gate *gate, bool is_arbiter_turn_kept) {
    if (!gate_await_launches(gate)) {
        turn_extend(&gate->turn, clock_now());
        return OPEN;
    }
    gate->is_host_bound = is_host_bound_now(gate);
    bool is_drained = is_known_drained(gate);
    uint64_t ends_recorded_at = !is_drained && turn_events_record_ends(&gate->events, NULL) ? clock_now() : 0;
    give_back(gate, is_arbiter_turn_kept);
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
    turn_request_end(&gate->request, is_drained ? gate->turn.expected : measure_cost(gate, ends_recorded_at));
    turn_events_reset(&gate->events);
    return SHUT;
}

/* Draws the launch to be sampled from as many launches as the last turn had. A fixed one would not be typical: the
 * first finds the card idle and the caches cold. */
static void draw_sample(struct gate *gate) {
    gate->random_state = gate->random_state * 1664525U + 1013904223U; /* Numerical Recipes, section 7.1 */
    gate->sample_index = gate->turn.launches ? (gate->random_state >> 8) % gate->turn.launches : 0;
}

static enum phase open_turn(struct gate *gate) {
    draw_sample(gate);
    struct turn_limits limits = turn_request_take(&gate->request);
    gate->turn = turn_open(clock_now(), limits);
    turn_set_free_at(&gate->turn, turn_request_free_at(&gate->request));
    return OPEN;
}

/* The arbiter's turn goes on if only our part of it has to be measured. */
static bool is_arbiter_turn_kept(const struct gate *gate, enum verdict verdict) {
    return verdict == VERDICT_UNMEASURED || turn_request_is_unbounded(&gate->request, gate->turn.expected);
}

/* Counts as a launch in the driver while LOCK_GATE is released, so that no other thread ends the turn and destroys the
 * event. */
static bool query_probe(struct gate *gate, CUevent probe) {
    gate->launches_in_driver++;
    gate_unlock(gate);
    bool is_passed = turn_events_is_probe_passed(probe);
    gate_lock(gate);
    gate->launches_in_driver--;
    if (gate->phase == CLOSING) gate_note_change(gate);
    return is_passed;
}

static bool learn_from_probe(struct gate *gate) {
    CUevent probe = turn_events_probe(&gate->events);
    bool is_passed = probe && query_probe(gate, probe);
    if (!probe || gate->phase != OPEN || turn_events_probe(&gate->events) != probe) return is_passed;
    if (is_passed) turn_events_drop_probe(&gate->events);
    turn_apply_probe(&gate->turn, is_passed, clock_now());
    turn_request_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    return is_passed;
}

/* The default timer slack of a thread is 50 us: a third of the 150 us that may be in flight beside a latency-sensitive
 * tenant. */
static void await_change_precisely(struct gate *gate, uint64_t ns) {
    int slack = prctl(PR_GET_TIMERSLACK);
    if (slack > 1) prctl(PR_SET_TIMERSLACK, 1UL);
    gate_await_change(gate, ns);
    if (slack > 1) prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

/* Waits until less work is in flight, for 1 ms at most, because the arbiter may ask the turn back meanwhile. */
static void await_room(struct gate *gate) {
    if (learn_from_probe(gate) || gate->phase != OPEN) return;
    uint64_t rest = turn_remaining(&gate->turn, clock_now()), depth = gate->turn.limits.depth;
    uint64_t wait = rest > depth ? rest - depth : POLL_MIN, since = clock_now();
    await_change_precisely(gate, min_u64(wait, POLL_MAX));
    activity_count_wait(gate->request.activity, REGION_WAIT_DRAIN, clock_now() - since);
}

void gate_turns_step(struct gate *gate, enum verdict verdict) {
    if (gate->phase == OPENING || gate->phase == CLOSING) {
        gate_await_change(gate, TRANSITION_POLL);
        return;
    }
    if (gate->phase == OPEN && verdict == VERDICT_TOO_DEEP) {
        await_room(gate);
        return;
    }
    bool is_open = gate->phase == OPEN;
    gate->phase = is_open ? CLOSING : OPENING;
    gate_unlock(gate);
    enum phase next = is_open ? close_turn(gate, is_arbiter_turn_kept(gate, verdict)) : open_turn(gate);
    gate_lock(gate);
    gate_set_phase(gate, next);
}
