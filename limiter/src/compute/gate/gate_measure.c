#include "compute/gate/gate_measure.h"

#include <stdlib.h>
#include <string.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/link/card_turn.h"
#include "compute/link/container_turn.h"
#include "compute/link/early_start.h"
#include "compute/link/linked_window.h"
#include "compute/link/turn_request.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/estimates.h"
#include "compute/turn/turn.h"
#include "region/activity.h"

/* When the drain has been waited for so long, the overdraft lends for any launch if it is full, and the time that has
 * passed is charged. */
#define LONG_WAIT (1000 * NS_PER_MS)

/* How long the work of a turn that was set aside may take longer than estimated. */
#define ASIDE_SLACK (20 * NS_PER_MS)

/* How much later the work of a linked card is overdue. It usually waits for a launch on another card, which goes early
 * there. */
#define LINKED_SLACK (50 * NS_PER_MS)

/* Shortest and longest poll interval while a thread waits for the drain. */
#define POLL_MIN (20 * NS_PER_US)
#define POLL_MAX (1 * NS_PER_MS)

/* How long work that is on the card counts as work that goes on, for the arbiter. */
#define SEEN_AT_WORK (2 * NS_PER_MS)

/* Within this time the waiting launch is on the card when the work before it has drained and been charged. */
#define TIME_TO_GO_ON (NS_PER_MS / 2)

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

/* A kernel that never ends is charged, too. */
static void charge_until(struct gate *gate, uint64_t now) {
    uint64_t passed = saturating_sub(now, gate->turn.begun_at);
    container_turn_charge(&gate->request, saturating_sub(passed, gate->turn.charged));
    gate->turn.charged = max_u64(gate->turn.charged, passed);
}

static bool is_known(const struct gate *gate, uint64_t key) {
    uint64_t estimate = 0;
    return estimates_of(&gate->estimates, key, &estimate);
}

/* Called before the estimate of the launch is learned. */
static void note_unknown(struct gate *gate, uint64_t key, uint64_t ns) {
    if (is_known(gate, key)) return;
    gate->assumed_ns = gate->turn.early.assumed_ns = early_launches_assume(gate->assumed_ns, ns);
}

static void learn(struct gate *gate, uint64_t key, uint64_t ns) {
    if (linked_window_is_any(&gate->request))
        estimates_learn_linked(&gate->estimates, key, ns);
    else
        estimates_learn(&gate->estimates, key, ns);
}

/* A launch that was followed by early ones may have waited for them, if it was alone; with others, nothing is known of
 * it. */
static void learn_sample(struct gate *gate, const struct turn *turn, const struct turn_sample *sample, uint64_t ns) {
    const struct early_launches *early = &turn->early;
    bool has_waited = early_launches_are_any(early) && !sample->is_early;
    if (!has_waited) note_unknown(gate, sample->key, ns);
    if (!has_waited)
        learn(gate, sample->key, ns);
    else if (early->before == 1)
        estimates_learn_waiting(&gate->estimates, sample->key, ns, early->begun_at - turn->begun_at);
}

/* Whether the turn's first launch, before the early ones, has worked for all of its time. */
static bool has_worked(const struct turn *turn, uint64_t ns) {
    return turn->early.before == 1 && !estimates_may_have_waited(ns, turn->early.begun_at - turn->begun_at);
}

static void learn_early(struct gate *gate, uint64_t sampled, bool is_stream_idle) {
    note_unknown(gate, gate->turn_sample.key, sampled);
    if (gate->turn.limits.is_joint && is_known(gate, gate->turn_sample.key))
        estimates_learn_beside(&gate->estimates, gate->turn_sample.key, sampled);
    else
        learn(gate, gate->turn_sample.key, turn_sampled(sampled, is_stream_idle));
}

/* The end of the launch that was timed is not among those of the streams. */
static void learn_before(struct gate *gate, uint64_t ns) {
    early_launches_note_timed(&gate->turn.early, turn_events_measured_ns(gate_events(gate)));
    learn_sample(gate, &gate->turn, &gate->turn_sample, ns);
}

/* In a turn that goes on for long, early launches whose estimates are wrong, or that have none, are not to be admitted
 * for long. */
static void learn_finished_sample(struct gate *gate) {
    bool is_stream_idle = false;
    uint64_t sampled = gate->turn_sample.is_chosen ? turn_events_sampled_ns(gate_events(gate), &is_stream_idle) : 0;
    if (!sampled) return;
    if (gate->turn_sample.is_early)
        learn_early(gate, sampled, is_stream_idle);
    else
        learn_before(gate, turn_sampled(sampled, is_stream_idle));
    if (gate->turn_sample.is_early || has_worked(&gate->turn, sampled))
        early_launches_note_sample(&gate->turn.early, sampled);
    turn_events_end_sample(gate_events(gate));
    gate->turn_sample.is_chosen = false;
}

static bool takes_loan(struct gate *gate, uint64_t need, bool is_urgent) {
    learn_finished_sample(gate);
    uint64_t left = early_launches_take_back(&gate->turn.early);
    uint64_t more = early_launches_lend_used(&gate->turn.early, clock_now());
    if (left || more) early_start_return_loan(&gate->request, left, more);
    uint64_t loan = early_start_borrow(&gate->request, need, is_urgent);
    if (loan) turn_lend(&gate->turn, loan, clock_now());
    return loan != 0;
}

/* Charges what has passed for each LONG_WAIT. */
static bool has_waited_long(struct gate *gate, uint64_t since, unsigned *charges) {
    uint64_t now = clock_now(), waited = saturating_sub(now, since);
    if (waited / LONG_WAIT > *charges) {
        *charges = (unsigned)(waited / LONG_WAIT);
        charge_until(gate, now);
    }
    return *charges > 0;
}

/* When the launches before the first loan are over, the ends of the others are recorded. */
static bool is_drained(struct gate *gate) {
    struct early_launches *early = &gate->turn.early;
    struct turn_events *events = gate_events(gate);
    bool is_sample_early = gate->turn_sample.is_chosen && gate->turn_sample.is_early;
    if (early_launches_may_be_awaited(early) && turn_events_ends_are_done(events, !is_sample_early)) {
        early_launches_note_before(early, turn_events_ends_ns(events, !is_sample_early));
        turn_events_record_ends(events, NULL);
    }
    return turn_events_are_done(events);
}

void gate_measure_end_early_launches(struct gate *gate) { (void)is_drained(gate); }

/* A turn whose share is charged now and then goes on behind that, for the launch that waits. */
static bool goes_on(const struct gate *gate) {
    return card_turn_is_held(&gate->request) || card_turn_is_of_job(&gate->request);
}

static enum drain await_drain(struct gate *gate, uint64_t need, uint64_t until) {
    gate->turn.early.is_beside = arbiter_link_is_contended(&gate->request.link);
    uint64_t since = clock_now(), slack = linked_window_is_any(&gate->request) ? LINKED_SLACK : 0;
    uint64_t due_at = turn_drain_due_at(&gate->turn, since) + slack;
    bool is_given_back = !card_turn_is_held(&gate->request);
    unsigned charges = 0;
    while (!is_drained(gate)) {
        uint64_t now = clock_now();
        if (goes_on(gate)) container_turn_note_awaited(&gate->request, now + SEEN_AT_WORK);
        if (now > until) return DRAIN_TIMED_OUT;
        if (now > due_at && is_given_back) card_turn_resume(&gate->request);
        if (now > due_at && takes_loan(gate, need, has_waited_long(gate, since, &charges))) return DRAIN_STAYS;
        sleep_until_next_poll(now > due_at ? UINT64_MAX : gate->turn.drains_at);
    }
    __atomic_store_n(&gate->works_until, 0, __ATOMIC_RELAXED);
    return DRAIN_DONE;
}

enum drain gate_measure_await_drain(struct gate *gate, uint64_t need, uint64_t until) {
    uint64_t since = clock_now();
    linked_window_note_wait(&gate->request, true);
    enum drain drain = await_drain(gate, need, until);
    bool is_of_job = card_turn_is_of_job(&gate->request);
    if (goes_on(gate)) container_turn_note_awaited(&gate->request, is_of_job ? 0 : clock_now() + TIME_TO_GO_ON);
    linked_window_note_wait(&gate->request, false);
    activity_count_wait(gate->request.activity, REGION_WAIT_DRAIN, clock_now() - since);
    return drain;
}

/* A launch that found its stream idle may have taken its launch latency, or not. Such a sample is no shorter than the
 * kernel either, and so may shorten its estimate like any other. */
void gate_measure_learn_beside(struct gate *gate) {
    bool is_stream_idle = false;
    uint64_t sampled = turn_events_sampled_ns(gate_events(gate), &is_stream_idle);
    if (sampled) estimates_learn_beside(&gate->estimates, gate->turn_sample.key, sampled);
}

static void learn_estimates(struct gate *gate, struct turn *turn, const struct turn_events *events,
                            const struct turn_sample *sample, uint64_t measured) {
    bool is_stream_idle = false;
    uint64_t sampled = turn_events_sampled_ns(events, &is_stream_idle);
    if (sampled) learn_sample(gate, turn, sample, turn_sampled(sampled, is_stream_idle));
    if (sampled && sample->is_early) early_launches_note_sample(&turn->early, sampled);
    if (measured && turn_is_informative(turn))
        estimates_fit(&gate->estimates, turn->expected, turn_worked(turn, measured), turn_is_fully_informative(turn));
}

/* An interrupted turn is charged its estimates, and they learn nothing from it. Two in a row mean that the kernels take
 * longer than they are estimated. Returns 0 for a turn whose measured time is not to be used. */
static uint64_t believable(struct gate *gate, const struct turn *turn, uint64_t measured) {
    bool is_interrupted = turn_is_interrupted(turn, measured) && !gate->was_interrupted;
    gate->was_interrupted = is_interrupted;
    return is_interrupted ? 0 : measured;
}

/* In a joint turn, launches may have passed whose streams are not known. */
static uint64_t measured_ns(struct gate *gate, struct turn *turn, const struct turn_events *events) {
    turn_note_waited(turn, turn->limits.is_joint ? 0 : turn_events_waited_ns(events));
    return believable(gate, turn, turn_events_measured_ns(events));
}

/* Of a launch that was never measured before, the time contains what the host did until the next one. */
static void count_kernel(const struct gate *gate, const struct turn *turn, uint64_t cost) {
    bool is_kernel = turn->launches == 1 && !turn->is_unknown && !early_launches_are_any(&turn->early);
    if (is_kernel) activity_count_kernel(gate->request.activity, cost);
}

static void end_loans(struct gate *gate, uint64_t measured) {
    const struct early_launches *early = &gate->turn.early;
    if (early_launches_are_any(early))
        early_start_return_loan(&gate->request, early->lent, early_launches_used(early, measured, clock_now()));
}

/* If the driver gives no figure, the whole time since the turn began is charged. */
uint64_t gate_measure_turn(struct gate *gate, uint64_t ends_recorded_at) {
    uint64_t measured = measured_ns(gate, &gate->turn, gate_events(gate));
    uint64_t cost = turn_cost(&gate->turn, measured, ends_recorded_at);
    learn_estimates(gate, &gate->turn, gate_events(gate), &gate->turn_sample, measured);
    count_kernel(gate, &gate->turn, cost);
    end_loans(gate, measured);
    return saturating_sub(cost ? cost : clock_now() - gate->turn.begun_at, gate->turn.charged);
}

void gate_measure_set_aside(struct gate *gate, uint64_t ends_recorded_at) {
    gate->set_aside = (struct set_aside_turn){.is_valid = true,
                                              .has_ends = ends_recorded_at != 0,
                                              .ends_recorded_at = ends_recorded_at,
                                              .sample = gate->turn_sample,
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
    struct set_aside_turn *aside = &gate->set_aside;
    const struct turn_events *events = &gate->events[gate->open_events ^ 1];
    uint64_t until = max_u64(aside->turn.drains_at, clock_now()) + ASIDE_SLACK;
    if (!await_events(events, aside->turn.drains_at, until)) return aside->turn.expected;
    uint64_t measured = aside->has_ends ? measured_ns(gate, &aside->turn, events) : 0;
    learn_estimates(gate, &aside->turn, events, &aside->sample, measured);
    uint64_t cost = turn_cost(&aside->turn, measured, aside->ends_recorded_at);
    count_kernel(gate, &aside->turn, cost);
    return cost;
}

void gate_measure_collect(struct gate *gate) {
    if (!gate->set_aside.is_valid) return;
    uint64_t cost = measured_cost(gate);
    gate->set_aside.is_valid = false;
    container_turn_charge(&gate->request, cost);
}

void gate_measure_drop(struct gate *gate) {
    if (gate->set_aside.is_valid) container_turn_charge_later(&gate->request, gate->set_aside.turn.expected);
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
    end_loans(gate, 0);
    turn_request_end(&gate->request, saturating_sub(gate->turn.expected, gate->turn.charged));
}
