#include "compute/gate/gate_measure.h"

#include <stdlib.h>
#include <string.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/link/turn_request.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/estimates.h"
#include "compute/turn/turn.h"
#include "region/activity.h"

/* How long the end of a turn waits for its work to drain. Doubled after each timeout in a row, up to 64 s: a kernel may
 * be waiting for a later launch of this process, which waits here, or it may only be long. */
#define DRAIN_TIMEOUT     (1000 * NS_PER_MS)
#define DRAIN_TIMEOUT_MAX (64 * DRAIN_TIMEOUT)

/* Shortest and longest poll interval while a thread waits for the drain. */
#define POLL_MIN (20 * NS_PER_US)
#define POLL_MAX (1 * NS_PER_MS)

/* Polls slowly while the drain is more than 2 ms off, then fast. */
static void sleep_until_next_poll(uint64_t drained) {
    bool is_far_off = drained > clock_now() + 2 * POLL_MAX;
    system_sleep(is_far_off ? POLL_MAX : POLL_MIN);
}

static bool await_events(const struct turn_events *events, uint64_t drains_at, uint64_t until) {
    while (!turn_events_are_done(events)) {
        if (clock_now() > until) return false;
        sleep_until_next_poll(drains_at);
    }
    return true;
}

bool gate_measure_await_drain(const struct gate *gate, uint64_t until) {
    return await_events(gate_events(gate), gate->turn.drains_at, until);
}

/* A launch that found its stream idle may have taken its launch latency, or not. Such a sample is no shorter than the
 * kernel either, and so may shorten its estimate like any other. */
void gate_measure_learn_beside(struct gate *gate) {
    bool is_stream_idle = false;
    uint64_t sampled = turn_events_sampled_ns(gate_events(gate), &is_stream_idle);
    if (sampled) estimates_learn_beside(&gate->estimates, gate->turn_sample.key, sampled);
}

static void learn_estimates(struct gate *gate, const struct turn *turn, const struct turn_events *events,
                            uint64_t sample_key, uint64_t measured) {
    bool is_stream_idle = false;
    uint64_t sampled = turn_events_sampled_ns(events, &is_stream_idle);
    if (sampled) estimates_learn(&gate->estimates, sample_key, turn_sampled(sampled, is_stream_idle));
    if (measured && turn_is_informative(turn))
        estimates_fit(&gate->estimates, turn->expected, measured, turn_is_fully_informative(turn));
}

/* An interrupted turn is charged its estimates, and they learn nothing from it. Two in a row mean that the kernels take
 * longer than they are estimated. Returns 0 for a turn whose measured time is not to be used. */
static uint64_t believable(struct gate *gate, const struct turn *turn, uint64_t measured) {
    bool is_interrupted = turn_is_interrupted(turn, measured) && !gate->was_interrupted;
    gate->was_interrupted = is_interrupted;
    return is_interrupted ? 0 : measured;
}

static uint64_t drain_timeout(const struct gate *gate) {
    uint64_t expected = 2 * gate->turn.expected;
    uint64_t backed_off = DRAIN_TIMEOUT << (gate->drain_timeouts < 6 ? gate->drain_timeouts : 6);
    if (expected > DRAIN_TIMEOUT_MAX) return DRAIN_TIMEOUT_MAX;
    return expected > backed_off ? expected : backed_off;
}

/* If the work did not drain in time, or the driver gives no figure, the whole time since the turn began is charged. */
uint64_t gate_measure_turn(struct gate *gate, uint64_t ends_recorded_at) {
    uint64_t since = clock_now();
    bool is_done = gate_measure_await_drain(gate, since + drain_timeout(gate));
    activity_count_wait(gate->request.activity, REGION_WAIT_DRAIN, clock_now() - since);
    gate->drain_timeouts = is_done ? 0 : gate->drain_timeouts + 1;
    if (!is_done) return clock_now() - gate->turn.begun_at;
    uint64_t measured = believable(gate, &gate->turn, turn_events_measured_ns(gate_events(gate)));
    uint64_t cost = turn_cost(&gate->turn, measured, ends_recorded_at);
    learn_estimates(gate, &gate->turn, gate_events(gate), gate->turn_sample.key, measured);
    return cost ? cost : clock_now() - gate->turn.begun_at;
}

void gate_measure_set_aside(struct gate *gate, uint64_t ends_recorded_at) {
    gate->set_aside = (struct set_aside_turn){.is_valid = true,
                                              .has_ends = ends_recorded_at != 0,
                                              .ends_recorded_at = ends_recorded_at,
                                              .sample_key = gate->turn_sample.key,
                                              .turn = gate->turn};
    gate->open_events ^= 1;
    turn_events_reset(gate_events(gate));
}

bool gate_measure_is_drained(const struct gate *gate) {
    return gate->set_aside.has_ends && turn_events_are_done(&gate->events[gate->open_events ^ 1]);
}

/* The work is waited for, so that the host is at most two turns ahead of the card, whatever the arbiter gives. Without
 * end events only the sampled launch was measured. */
static uint64_t measured_cost(struct gate *gate) {
    const struct set_aside_turn *aside = &gate->set_aside;
    const struct turn_events *events = &gate->events[gate->open_events ^ 1];
    if (!await_events(events, aside->turn.drains_at, clock_now() + DRAIN_TIMEOUT)) return aside->turn.expected;
    uint64_t measured = aside->has_ends ? believable(gate, &aside->turn, turn_events_measured_ns(events)) : 0;
    learn_estimates(gate, &aside->turn, events, aside->sample_key, measured);
    return turn_cost(&aside->turn, measured, aside->ends_recorded_at);
}

void gate_measure_collect(struct gate *gate) {
    if (!gate->set_aside.is_valid) return;
    uint64_t cost = measured_cost(gate);
    gate->set_aside.is_valid = false;
    turn_request_charge(&gate->request, cost);
}

void gate_measure_drop(struct gate *gate) {
    if (gate->set_aside.is_valid) turn_request_charge_later(&gate->request, gate->set_aside.turn.expected);
    gate->set_aside.is_valid = false;
}

struct turn_events *gate_measure_detach_events(struct gate *gate) {
    struct turn_events *copy = gate->in_driver ? NULL : malloc(sizeof gate->events);
    if (copy) memcpy(copy, gate->events, sizeof gate->events);
    memset(gate->events, 0, sizeof gate->events);
    gate->set_aside.is_valid = false;
    gate->queue.sample = (struct queue_sample){0};
    return copy;
}

void gate_measure_destroy_events(struct turn_events *events) {
    for (int i = 0; events && i < 2; i++) turn_events_destroy(&events[i]);
    free(events);
}

void gate_measure_charge_estimates(struct gate *gate) {
    turn_request_give_back(&gate->request, turn_remaining(&gate->turn, clock_now()), false);
    turn_request_end(&gate->request, gate->turn.expected);
}
