#include "compute/gate_turns.h"

#include <sys/prctl.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/estimates.h"
#include "compute/turn.h"
#include "compute/turn_events.h"
#include "compute/turn_request.h"

/* How long a turn's end waits for the card to be done: each time in vain twice as long, for a kernel may wait for the
 * very launch that waits for it, or only be long. */
#define PATIENCE     (1000 * NS_PER_MS)
#define PATIENCE_MAX (64 * PATIENCE)

/* Between two looks whether there is room again, or the card is done. */
#define LOOK_LEAST (20 * NS_PER_US)
#define LOOK_MOST  (1 * NS_PER_MS)

/* A pause after which a program is taken for one that launches little and often waits. */
#define LEISURE (100 * NS_PER_US)

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
    if (expected > PATIENCE_MAX) return PATIENCE_MAX;
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
static enum phase close_turn(struct gate *gate, bool is_kept) {
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

/* Any of a turn's launches, for the first one finds the card idle, or caches cold. */
static void draw_sample(struct gate *gate) {
    gate->drawn = gate->drawn * 1664525U + 1013904223U; /* Numerical Recipes, section 7.1 */
    gate->sample_at = gate->turn.launches ? (gate->drawn >> 8) % gate->turn.launches : 0;
}

static enum phase open_turn(struct gate *gate) {
    draw_sample(gate);
    struct turn_limits limits = turn_request_take(&gate->request);
    gate->turn = turn_open(clock_now(), limits);
    turn_set_free_at(&gate->turn, turn_request_free_at(&gate->request));
    return OPEN;
}

/* The arbiter's turn goes on where only ours is to be measured. */
static bool is_kept(const struct gate *gate, enum verdict verdict) {
    return verdict == VERDICT_UNMEASURED || turn_request_is_unbounded(&gate->request, gate->turn.expected);
}

/* Nobody ends the turn meanwhile, nor the event. */
static bool has_passed(struct gate *gate, CUevent probe) {
    gate->passing++;
    gate_unlock(gate);
    bool is_passed = turn_events_has_passed(probe);
    gate_lock(gate);
    gate->passing--;
    if (gate->phase == CLOSING) pthread_cond_broadcast(&gate->changed);
    return is_passed;
}

static bool learn_from_probe(struct gate *gate) {
    CUevent probe = turn_events_probe(&gate->events);
    bool is_passed = probe && has_passed(gate, probe);
    if (!probe || gate->phase != OPEN || turn_events_probe(&gate->events) != probe) return is_passed;
    if (is_passed) turn_events_drop_probe(&gate->events);
    turn_apply_probe(&gate->turn, is_passed, clock_now());
    turn_request_extend(&gate->request, gate->turn.drained + ARBITRATION_GRACE_NS);
    return is_passed;
}

/* A thread's timers may be 50 us late as a rule, which is half of what is in flight where somebody is in a hurry. */
static void await_change_sharply(struct gate *gate, uint64_t ns) {
    int slack = prctl(PR_GET_TIMERSLACK);
    if (slack > 1) prctl(PR_SET_TIMERSLACK, 1UL);
    gate_await_change(gate, ns);
    if (slack > 1) prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

/* Until there is room for a launch among those in flight: but a while, for who called the turn back says so meanwhile.
 */
static void await_room(struct gate *gate) {
    if (learn_from_probe(gate) || gate->phase != OPEN) return;
    uint64_t rest = turn_remaining(&gate->turn, clock_now()), depth = gate->turn.limits.depth;
    uint64_t wait = rest > depth ? rest - depth : LOOK_LEAST;
    await_change_sharply(gate, min_u64(wait, LOOK_MOST));
}

void gate_turns_step(struct gate *gate, enum verdict verdict) {
    if (gate->phase == OPENING || gate->phase == CLOSING) {
        gate_await_change(gate, NS_PER_MS * 10);
        return;
    }
    if (gate->phase == OPEN && verdict == VERDICT_DEEP) {
        await_room(gate);
        return;
    }
    bool is_open = gate->phase == OPEN;
    gate->phase = is_open ? CLOSING : OPENING;
    gate_unlock(gate);
    enum phase next = is_open ? close_turn(gate, is_kept(gate, verdict)) : open_turn(gate);
    gate_lock(gate);
    gate_set_phase(gate, next);
}
