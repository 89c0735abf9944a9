#include "compute/gate_state.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "driver/cards.h"

/* How long a turn's end is waited for by who ends it for all. */
#define PATIENCE (1000 * NS_PER_MS)

/* Between two looks whether there is room again. */
#define LOOK_LEAST (20 * NS_PER_US)
#define LOOK_MOST  (1 * NS_PER_MS)

static struct gate *gates[GATES]; /* atomically */

static bool is_device(int device) { return device >= 0 && device < GATES; }

struct gate *gate_at(int device) {
    return is_device(device) ? __atomic_load_n(&gates[device], __ATOMIC_ACQUIRE) : NULL;
}

static struct gate *make(int device) {
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate || cards_of_device(device, gate->request.uuid)) return gate;
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

void gate_await_change(struct gate *gate, uint64_t ns) {
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
    pthread_mutex_unlock(&gate->mutex);
    bool is_passed = turn_events_has_passed(probe);
    pthread_mutex_lock(&gate->mutex);
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

void gate_step(struct gate *gate, enum verdict verdict) {
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
    pthread_mutex_unlock(&gate->mutex);
    enum phase next = is_open ? gate_close(gate, is_kept(gate, verdict)) : open_turn(gate);
    pthread_mutex_lock(&gate->mutex);
    gate_set_phase(gate, next);
}

bool gate_claim(struct gate *gate) {
    uint64_t until = clock_now() + PATIENCE;
    while (gate->phase == CLOSING && clock_now() < until) gate_await_change(gate, NS_PER_MS * 10);
    if (gate->phase != OPEN) return false;
    gate->phase = CLOSING;
    return true;
}
