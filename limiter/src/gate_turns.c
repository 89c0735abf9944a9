#include "gate_turns.h"

#include <stdlib.h>

#include "cards.h"
#include "moment.h"

#define NS_PER_MS 1000000ULL

/* How long a turn's end waits for launches that are inside the driver, and for the card to be done: each time in vain
 * twice as long, for a kernel may wait for the very launch that waits for it, or only be long. */
#define PASSING_MOST  (100 * NS_PER_MS)
#define PATIENCE      (1000 * NS_PER_MS)
#define PATIENCE_MOST (64 * PATIENCE)

/* Between two looks whether the card is done. */
#define LOOK_LEAST (20 * 1000ULL)
#define LOOK_MOST  (1 * NS_PER_MS)

/* A pause after which a program is taken for one that launches little and often waits. */
#define LEISURE (100 * 1000ULL)

static struct gate *gates[GATES]; /* atomically */

static bool is_device(int device) { return device >= 0 && device < GATES; }

struct gate *gate_at(int device) {
    return is_device(device) ? __atomic_load_n(&gates[device], __ATOMIC_ACQUIRE) : NULL;
}

static struct gate *make(int device) {
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate || cards_of_device(device, gate->lease.uuid)) return gate;
    free(gate);
    return NULL;
}

struct gate *gate_made_at(int device) {
    struct gate *gate = gate_at(device);
    if (gate || !is_device(device)) return gate;
    struct gate *made = make(device);
    if (!made || __atomic_compare_exchange_n(&gates[device], &gate, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    free(made);
    return gate;
}

static void await_change(struct gate *gate, uint64_t ns) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t until = (uint64_t)now.tv_nsec + ns;
    now.tv_sec += (time_t)(until / NS_PER_SECOND);
    now.tv_nsec = (long)(until % NS_PER_SECOND);
    pthread_cond_timedwait(&gate->changed, &gate->mutex, &now);
}

void gate_set_phase(struct gate *gate, enum phase phase) {
    gate->phase = phase;
    pthread_cond_broadcast(&gate->changed);
}

/* Whether no launch is inside the driver any more. */
bool gate_await_passing(struct gate *gate) {
    uint64_t until = moment_now() + PASSING_MOST;
    pthread_mutex_lock(&gate->mutex);
    while (gate->passing && moment_now() < until) await_change(gate, NS_PER_MS);
    bool is_clear = gate->passing == 0;
    pthread_mutex_unlock(&gate->mutex);
    return is_clear;
}

/* Seldom while it cannot be done yet, then often. */
static void pause_before(uint64_t drained) {
    bool is_far = drained > moment_now() + 2 * LOOK_MOST;
    struct timespec span = moment_span(is_far ? LOOK_MOST : LOOK_LEAST);
    nanosleep(&span, NULL);
}

static bool await_drain(const struct gate *gate, uint64_t until) {
    while (!marks_are_done(&gate->marks)) {
        if (moment_now() > until) return false;
        pause_before(gate->turn.drained);
    }
    return true;
}

static void learn(struct gate *gate, uint64_t cost) {
    uint64_t sampled = marks_sampled(&gate->marks);
    if (sampled) estimates_learn(&gate->estimates, gate->sample, sampled);
    if (turn_tells(&gate->turn, cost)) estimates_fit(&gate->estimates, gate->turn.expected, cost);
}

static uint64_t patience(const struct gate *gate) {
    uint64_t expected = 2 * gate->turn.expected;
    uint64_t grown = PATIENCE << (gate->in_vain < 6 ? gate->in_vain : 6);
    if (expected > PATIENCE_MOST) return PATIENCE_MOST;
    return expected > grown ? expected : grown;
}

/* Where the card is not done in time, or nothing at all could be measured, all the time that has passed is charged. */
static uint64_t settle(struct gate *gate, uint64_t marked) {
    bool is_done = await_drain(gate, moment_now() + patience(gate));
    gate->in_vain = is_done ? 0 : gate->in_vain + 1;
    if (!is_done) return moment_now() - gate->turn.begun;
    uint64_t cost = turn_cost(&gate->turn, marks_measured(&gate->marks), marked);
    learn(gate, cost);
    return cost ? cost : moment_now() - gate->turn.begun;
}

static bool is_leisurely(const struct gate *gate) {
    uint64_t now = moment_now();
    return gate->lease.turn != 0 && !gate->turn.is_unknown && now > gate->turn.drained + LEISURE;
}

/* The card was expected to be free by now, and may not be: what the next one is told would be wrong by ever more. */
static void see_begin(struct gate *gate) {
    bool is_waited_for = false;
    while (moment_now() < gate->turn.drained && !marks_have_begun(&gate->marks)) {
        struct timespec span = moment_span(LOOK_LEAST);
        is_waited_for = true;
        nanosleep(&span, NULL);
    }
    if (is_waited_for) turn_begin(&gate->turn, moment_now());
}

/* The end is told before the card is done, so that who is next has his work there when it is; but not where nobody
 * knows when that is. */
static void stop(struct gate *gate, bool is_kept) {
    if (is_kept && !lease_is_called_back(&gate->lease)) return;
    if (gate->turn.is_unknown)
        await_drain(gate, moment_now() + PATIENCE);
    else if (gate->lease.turn)
        see_begin(gate);
    lease_stop(&gate->lease, turn_rest(&gate->turn, moment_now()));
    lease_ask(&gate->lease, gate->turn.expected);
}

/* A launch that stays in the driver may be waiting for another one: then the turn goes on. */
static enum phase close_turn(struct gate *gate, bool is_kept) {
    if (!gate_await_passing(gate)) {
        turn_stretch(&gate->turn, moment_now());
        return OPEN;
    }
    gate->is_leisurely = is_leisurely(gate);
    uint64_t marked = marks_end(&gate->marks, NULL) ? moment_now() : 0;
    stop(gate, is_kept);
    lease_end(&gate->lease, settle(gate, marked));
    marks_reset(&gate->marks);
    return SHUT;
}

static enum phase open_turn(struct gate *gate) {
    struct terms terms = lease_take(&gate->lease);
    gate->turn = turn_open(moment_now(), terms);
    turn_await(&gate->turn, lease_free_at(&gate->lease));
    return OPEN;
}

/* The arbiter's turn goes on where only ours is to be measured. */
static bool is_kept(const struct gate *gate, enum verdict verdict) {
    return verdict == VERDICT_UNMEASURED || lease_is_endless(&gate->lease, gate->turn.expected);
}

/* Nobody ends the turn meanwhile, nor the event. */
static bool has_passed(struct gate *gate, CUevent probe) {
    gate->passing++;
    pthread_mutex_unlock(&gate->mutex);
    bool is_passed = marks_has_passed(probe);
    pthread_mutex_lock(&gate->mutex);
    gate->passing--;
    if (gate->phase == CLOSING) pthread_cond_broadcast(&gate->changed);
    return is_passed;
}

static bool learn_from_probe(struct gate *gate) {
    CUevent probe = marks_probe(&gate->marks);
    bool is_passed = probe && has_passed(gate, probe);
    if (!probe || gate->phase != OPEN || marks_probe(&gate->marks) != probe) return is_passed;
    if (is_passed) marks_drop_probe(&gate->marks);
    turn_learn(&gate->turn, is_passed, moment_now());
    lease_extend(&gate->lease, gate->turn.drained + ARBITRATION_GRACE_NS);
    return is_passed;
}

/* Until there is room for a launch among those in flight: but a while, for who called the turn back says so meanwhile.
 */
static void await_room(struct gate *gate) {
    if (learn_from_probe(gate) || gate->phase != OPEN) return;
    uint64_t rest = turn_rest(&gate->turn, moment_now()), depth = gate->turn.terms.depth;
    uint64_t wait = rest > depth ? rest - depth : LOOK_LEAST;
    await_change(gate, wait < LOOK_MOST ? wait : LOOK_MOST);
}

void gate_step(struct gate *gate, enum verdict verdict) {
    if (gate->phase == OPENING || gate->phase == CLOSING) {
        await_change(gate, NS_PER_MS * 10);
        return;
    }
    if (gate->phase == OPEN && verdict == VERDICT_DEEP) {
        await_room(gate);
        return;
    }
    bool is_open = gate->phase == OPEN;
    gate->phase = is_open ? CLOSING : OPENING;
    pthread_mutex_unlock(&gate->mutex);
    enum phase next = is_open ? close_turn(gate, is_kept(gate, verdict)) : open_turn(gate);
    pthread_mutex_lock(&gate->mutex);
    gate_set_phase(gate, next);
}

bool gate_claim(struct gate *gate) {
    uint64_t until = moment_now() + PATIENCE;
    while (gate->phase == CLOSING && moment_now() < until) await_change(gate, NS_PER_MS * 10);
    if (gate->phase != OPEN) return false;
    gate->phase = CLOSING;
    return true;
}
