#include "compute/gate/gate_turns.h"

#include <sys/prctl.h>

#include "common/arbitration.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/system_calls.h"
#include "compute/gate/gate_measure.h"
#include "compute/gate/gate_queue.h"
#include "compute/link/turn_request.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/turn.h"
#include "region/activity.h"

/* Shortest and longest poll interval while a thread waits for the start of the work, or for room in the turn. */
#define POLL_MIN (20 * NS_PER_US)
#define POLL_MAX (1 * NS_PER_MS)

/* How long before its work drains a thread that waits for room looks whether the turn is asked back: as long as the
 * arbiter needs to give the next one, and a timer may be late. */
#define YIELD_CHECK_LEAD (ARBITRATION_GRANT_LEAD_NS + 50 * NS_PER_US)

/* How long the drain of a launch without an estimate is waited for before the turn is given back. */
#define UNKNOWN_DRAIN_TIMEOUT (1000 * NS_PER_MS)

/* How long the arbiter may take to answer that this process goes on. */
#define NEXT_TURN_TIMEOUT (100 * NS_PER_US)

/* Longest wait of a launch for room in the queue, before the state is looked at again. */
#define QUEUE_POLL (200 * NS_PER_US)

/* Longest wait for a thread that opens or closes the turn, before the state is looked at again. */
#define TRANSITION_POLL (10 * NS_PER_MS)

/* A card that has been idle for this long at the end of a turn belongs to a host-bound program: one that launches
 * little and often waits. */
#define HOST_BOUND_GAP (100 * NS_PER_US)

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
           turn_events_has_unrecorded_end(gate_events(gate), NULL);
}

/* If the card has begun later than expected, the drain time that the arbiter is told would be too early, and the error
 * would grow from turn to turn. So the start is waited for, and the drain time corrected. */
static void await_start(struct gate *gate) {
    bool has_waited = false;
    while (clock_now() < gate->turn.drains_at && !turn_events_have_begun(gate_events(gate))) {
        has_waited = true;
        system_sleep(POLL_MIN);
    }
    if (has_waited) turn_note_start(&gate->turn, clock_now());
}

/* Tells the arbiter when the work will drain, before it has: then the work of the next holder is queued when the card
 * is free. If the turn contains a launch without an estimate, its drain time is unknown and the work is waited for
 * first. */
static void give_back(struct gate *gate, bool is_arbiter_turn_kept) {
    if (is_arbiter_turn_kept) return;
    if (gate->request.arbiter_turn.number && gate->turn.is_unknown)
        gate_measure_await_drain(gate, clock_now() + UNKNOWN_DRAIN_TIMEOUT);
    if (gate->request.arbiter_turn.number && !gate->turn.is_unknown) await_start(gate);
    turn_request_give_back(&gate->request, turn_remaining(&gate->turn, clock_now()), false);
    turn_request_ask_next(&gate->request, gate->turn.expected);
}

/* Whether the next turn can begin while the work of this one drains: only the arbiter limits the process, and does not
 * ask the turn back. */
static bool may_overlap(const struct gate *gate) {
    return gate->request.arbiter_turn.number && gate->request.share >= FULL_CORES && !gate->turn.is_unknown &&
           turn_remaining(&gate->turn, clock_now()) > NEXT_TURN_TIMEOUT &&
           !turn_request_is_asked_to_yield(&gate->request);
}

/* Waiting for the drain would leave the host without its lead over the card at the end of each turn. */
static bool goes_on(struct gate *gate, bool is_arbiter_turn_kept, bool may_go_on) {
    if (!may_go_on) return false;
    if (is_arbiter_turn_kept && gate->request.arbiter_turn.number) return true;
    return turn_request_await_next(&gate->request, NEXT_TURN_TIMEOUT);
}

static void end_turn(struct gate *gate, bool is_arbiter_turn_kept, bool may_go_on) {
    gate->is_host_bound = is_host_bound_now(gate);
    bool is_drained = is_known_drained(gate);
    uint64_t ends_recorded_at = !is_drained && turn_events_record_ends(gate_events(gate), NULL) ? clock_now() : 0;
    give_back(gate, is_arbiter_turn_kept);
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
    if (goes_on(gate, is_arbiter_turn_kept, may_go_on && ends_recorded_at)) {
        gate_measure_set_aside(gate, ends_recorded_at);
        return;
    }
    turn_request_end(&gate->request, is_drained ? gate->turn.expected : gate_measure_turn(gate, ends_recorded_at));
    turn_events_reset(gate_events(gate));
}

/* The arbiter's turn goes on if only our part of it has to be measured. */
static bool is_arbiter_turn_kept(const struct gate *gate, enum verdict verdict) {
    return verdict == VERDICT_UNMEASURED || turn_request_is_unbounded(&gate->request, gate->turn.expected);
}

/* Measures the turn and gives it back. */
static void measure_turn(struct gate *gate, enum verdict verdict) {
    bool is_asked_to_yield = turn_request_is_asked_to_yield(&gate->request);
    if (gate->is_queue_turn) {
        gate_queue_end_turn(gate, true, is_asked_to_yield);
        return;
    }
    gate_measure_collect(gate);
    bool is_kept = is_arbiter_turn_kept(gate, verdict) && !is_asked_to_yield;
    end_turn(gate, is_kept, verdict != VERDICT_UNMEASURED && may_overlap(gate));
}

/* A launch that stays in the driver may be waiting for another launch of this process, so the turn is extended instead
 * of closed. The caller holds LOCK_GATE, which is released meanwhile. */
static enum phase close_turn(struct gate *gate, enum verdict verdict) {
    if (!gate_await_launches(gate)) {
        gate->is_queue_turn = false;
        turn_extend(&gate->turn, clock_now());
        return OPEN;
    }
    RELEASE_GATE(gate);
    measure_turn(gate, verdict);
    return SHUT;
}

/* Draws the launch to be sampled from as many launches as the last turn had. A fixed one would not be typical: the
 * first finds the card idle and the caches cold. */
static void draw_sample(struct gate *gate) {
    gate->random_state = gate->random_state * 1664525U + 1013904223U; /* Numerical Recipes, section 7.1 */
    gate->has_sample = false;
    gate->sample_index = gate->turn.launches ? (gate->random_state >> 8) % gate->turn.launches : 0;
}

/* Launches of a turn that was queued may still be in the driver, with entries of the events that would be reset. One
 * that stays there may be waiting for the launches of this turn, which is then not measured. The caller holds
 * LOCK_GATE, which is released meanwhile. */
static void prepare_events(struct gate *gate) {
    draw_sample(gate);
    if (gate_await_launches(gate))
        turn_events_reset(gate_events(gate));
    else
        turn_events_note_mixed(gate_events(gate));
    gate->has_ends = false;
}

static bool is_to_be_queued(struct gate *gate) {
    RELEASE_GATE(gate);
    return gate_queue_is_worth_it(gate);
}

/* The caller holds LOCK_GATE, which is released while the turn is waited for. */
static enum phase open_turn(struct gate *gate, bool is_queueable) {
    prepare_events(gate);
    if (is_queueable && is_to_be_queued(gate)) return gate_queue_begin(gate);
    struct turn_limits limits = gate_take_turn(gate);
    bool is_behind_own_work = gate->set_aside.is_valid || gate->is_queue_turn;
    uint64_t drains_at = is_behind_own_work ? gate->turn.drains_at : 0;
    gate->turn = turn_open(clock_now(), limits);
    gate->is_queue_turn = false;
    turn_set_free_at(&gate->turn, max_u64(drains_at, turn_request_free_at(&gate->request)));
    return OPEN;
}

static bool ask_probe(struct gate *gate, CUevent probe) {
    RELEASE_GATE(gate);
    return turn_events_is_probe_passed(probe);
}

/* Counts as a launch in the driver while LOCK_GATE is released, so that no other thread ends the turn and destroys the
 * event. */
static bool query_probe(struct gate *gate, CUevent probe) {
    gate->launches_in_driver++;
    bool is_passed = ask_probe(gate, probe);
    gate_note_left_driver(gate);
    return is_passed;
}

static bool learn_from_probe(struct gate *gate) {
    CUevent probe = turn_events_probe(gate_events(gate));
    bool is_passed = probe && query_probe(gate, probe);
    if (!probe || gate->phase != OPEN || turn_events_probe(gate_events(gate)) != probe) return is_passed;
    if (is_passed) turn_events_drop_probe(gate_events(gate));
    turn_apply_probe(&gate->turn, is_passed, clock_now());
    turn_request_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    return is_passed;
}

/* The default timer slack of a thread is 50 us: half of the 100 us that may be in flight beside a
 * latency-sensitive tenant. */
static void await_change_precisely(struct gate *gate, uint64_t ns) {
    int slack = system_prctl(PR_GET_TIMERSLACK, 0);
    if (slack > 1) system_prctl(PR_SET_TIMERSLACK, 1);
    gate_await_change(gate, ns);
    if (slack > 1) system_prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

/* Waits until less work is in flight, for 1 ms at most, because the arbiter may ask the turn back meanwhile. It also
 * returns when the next turn could be given: a DONE that is sent later leaves the card idle. */
static void await_room(struct gate *gate) {
    if (learn_from_probe(gate) || gate->phase != OPEN) return;
    uint64_t rest = turn_remaining(&gate->turn, clock_now()), depth = gate->turn.limits.depth;
    uint64_t next = rest > YIELD_CHECK_LEAD ? max_u64(depth, YIELD_CHECK_LEAD) : depth;
    uint64_t wait = rest > next ? rest - next : POLL_MIN, since = clock_now();
    struct region_activity *activity = gate->request.activity; /* another thread may open a turn during the wait */
    await_change_precisely(gate, min_u64(wait, POLL_MAX));
    activity_count_wait(activity, REGION_WAIT_DRAIN, clock_now() - since);
}

void gate_turns_step(struct gate *gate, enum verdict verdict) {
    bool is_request_used = gate->phase == SHUT && gate->is_turn_awaited;
    if (gate->phase == OPENING || gate->phase == CLOSING || is_request_used) {
        gate_await_change(gate, TRANSITION_POLL);
        return;
    }
    if (gate->phase == QUEUING) {
        gate_queue_want_turn(gate);
        gate_await_change(gate, TRANSITION_POLL);
        return;
    }
    if (gate->phase == OPEN && gate->is_queue_turn && verdict != VERDICT_UNMEASURED) {
        gate_await_change(gate, QUEUE_POLL);
        return;
    }
    if (gate->phase == OPEN && verdict == VERDICT_TOO_DEEP) {
        await_room(gate);
        return;
    }
    bool is_open = gate->phase == OPEN;
    gate->phase = is_open ? CLOSING : OPENING;
    gate_set_phase(gate, is_open ? close_turn(gate, verdict) : open_turn(gate, verdict != VERDICT_UNMEASURED));
}
