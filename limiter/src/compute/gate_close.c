/* A turn's end: what was launched in it is marked, told to the arbiter, waited for, and charged. */
#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/gate_state.h"

/* How long a turn's end waits for launches that are inside the driver, and for the card to be done: each time in vain
 * twice as long, for a kernel may wait for the very launch that waits for it, or only be long. */
#define PASSING_MOST  (100 * NS_PER_MS)
#define PATIENCE      (1000 * NS_PER_MS)
#define PATIENCE_MOST (64 * PATIENCE)

/* Between two looks whether the card is done. */
#define LOOK_LEAST (20 * NS_PER_US)
#define LOOK_MOST  (1 * NS_PER_MS)

/* A pause after which a program is taken for one that launches little and often waits. */
#define LEISURE (100 * NS_PER_US)

/* Whether no launch is inside the driver any more. */
bool gate_await_passing(struct gate *gate) {
    uint64_t until = clock_now() + PASSING_MOST;
    pthread_mutex_lock(&gate->mutex);
    while (gate->passing && clock_now() < until) gate_await_change(gate, NS_PER_MS);
    bool is_clear = gate->passing == 0;
    pthread_mutex_unlock(&gate->mutex);
    return is_clear;
}

/* Seldom while it cannot be done yet, then often. */
static void pause_before(uint64_t drained) {
    bool is_far = drained > clock_now() + 2 * LOOK_MOST;
    struct timespec span = clock_timespec(is_far ? LOOK_MOST : LOOK_LEAST);
    nanosleep(&span, NULL);
}

static bool await_drain(const struct gate *gate, uint64_t until) {
    while (!turn_events_are_done(&gate->events)) {
        if (clock_now() > until) return false;
        pause_before(gate->turn.drained);
    }
    return true;
}

static void learn(struct gate *gate, uint64_t measured) {
    bool is_prompt = false;
    uint64_t sampled = turn_events_sampled_ns(&gate->events, &is_prompt);
    if (sampled) estimates_learn(&gate->estimates, gate->sample, turn_sampled(sampled, is_prompt));
    if (measured && turn_is_informative(&gate->turn))
        estimates_fit(&gate->estimates, gate->turn.expected, measured, turn_is_fully_informative(&gate->turn));
}

static uint64_t patience(const struct gate *gate) {
    uint64_t expected = 2 * gate->turn.expected;
    uint64_t grown = PATIENCE << (gate->in_vain < 6 ? gate->in_vain : 6);
    if (expected > PATIENCE_MOST) return PATIENCE_MOST;
    return expected > grown ? expected : grown;
}

/* Where the card is not done in time, or nothing at all could be measured, all the time that has passed is charged. */
static uint64_t settle(struct gate *gate, uint64_t marked) {
    bool is_done = await_drain(gate, clock_now() + patience(gate));
    gate->in_vain = is_done ? 0 : gate->in_vain + 1;
    if (!is_done) return clock_now() - gate->turn.begun;
    uint64_t measured = turn_events_measured_ns(&gate->events);
    uint64_t cost = turn_cost(&gate->turn, measured, marked);
    learn(gate, measured);
    return cost ? cost : clock_now() - gate->turn.begun;
}

static bool is_leisurely(const struct gate *gate) {
    uint64_t now = clock_now();
    return gate->request.arbiter_turn.number != 0 && !gate->turn.is_unknown && now > gate->turn.drained + LEISURE;
}

/* Its work was done before the turn was taken, as far as is known, and whose turn it is now would have to make way for
 * an event that says when. */
static bool is_long_past(const struct gate *gate) {
    return gate->is_leisurely && turn_request_is_called_back(&gate->request) &&
           turn_events_are_due(&gate->events, NULL);
}

/* The card was expected to be free by now, and may not be: what the next one is told would be wrong by ever more. */
static void see_begin(struct gate *gate) {
    bool is_waited_for = false;
    while (clock_now() < gate->turn.drained && !turn_events_have_begun(&gate->events)) {
        struct timespec span = clock_timespec(LOOK_LEAST);
        is_waited_for = true;
        nanosleep(&span, NULL);
    }
    if (is_waited_for) turn_note_start(&gate->turn, clock_now());
}

/* The end is told before the card is done, so that who is next has his work there when it is; but not where nobody
 * knows when that is. */
static void stop(struct gate *gate, bool is_kept) {
    if (is_kept && !turn_request_is_called_back(&gate->request)) return;
    if (gate->request.arbiter_turn.number && gate->turn.is_unknown) await_drain(gate, clock_now() + PATIENCE);
    if (gate->request.arbiter_turn.number && !gate->turn.is_unknown) see_begin(gate);
    turn_request_stop(&gate->request, turn_remaining(&gate->turn, clock_now()));
    turn_request_ask_next(&gate->request, gate->turn.expected);
}

/* A launch that stays in the driver may be waiting for another one: then the turn goes on. */
enum phase gate_close(struct gate *gate, bool is_kept) {
    if (!gate_await_passing(gate)) {
        turn_extend(&gate->turn, clock_now());
        return OPEN;
    }
    gate->is_leisurely = is_leisurely(gate);
    bool is_past = is_long_past(gate);
    uint64_t marked = !is_past && turn_events_record_ends(&gate->events, NULL) ? clock_now() : 0;
    stop(gate, is_kept);
    turn_request_end(&gate->request, is_past ? gate->turn.expected : settle(gate, marked));
    turn_events_reset(&gate->events);
    return SHUT;
}
