#include "compute/gate/gate_turns.h"

#include "common/arbitration.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/system_calls.h"
#include "compute/gate/gate_measure.h"
#include "compute/link/card_turn.h"
#include "compute/link/container_turn.h"
#include "compute/link/turn_request.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/turn.h"
#include "region/activity.h"

/* Shortest poll interval while a thread waits for the start of the work, or for room in the turn, and the longest wait
 * for room. */
#define POLL_MIN (20 * NS_PER_US)
#define POLL_MAX (1 * NS_PER_MS)

/* How long before its work drains a thread that waits for room looks whether the turn is asked back: as long as the
 * arbiter needs to give the next one, and a timer may be late. */
#define YIELD_CHECK_LEAD (ARBITRATION_GRANT_LEAD_NS + 50 * NS_PER_US)

/* How long the drain of a launch without an estimate is waited for before the turn is given back. */
#define UNKNOWN_DRAIN_TIMEOUT (1000 * NS_PER_MS)

/* How long the arbiter may take to answer that this process goes on. */
#define NEXT_TURN_TIMEOUT (100 * NS_PER_US)

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
 * it. Streams that still work have a kernel that waits. */
static bool is_known_drained(const struct gate *gate) {
    return gate->host.has_left_gap && !early_launches_are_any(&gate->turn.early) &&
           card_turn_is_asked_to_yield(&gate->request) && turn_events_has_unrecorded_end(gate_events(gate), NULL) &&
           turn_events_unrecorded_are_idle(gate_events(gate));
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

static bool has_no_estimate(const struct gate *gate) {
    return gate->turn.is_unknown || early_launches_are_any(&gate->turn.early);
}

/* Whether nothing is known of when the turn's work drains. Kernels of a job may spin until those on other cards begin.
 */
static bool is_drain_unknown(const struct gate *gate) {
    return has_no_estimate(gate) || card_turn_is_of_job(&gate->request);
}

/* Tells the arbiter when the work will drain, before it has: then the work of the next holder is queued when the card
 * is free. If that is unknown, the work was waited for before. */
static void give_back(struct gate *gate, bool is_arbiter_turn_kept) {
    if (is_arbiter_turn_kept) return;
    if (gate->request.arbiter_turn.number && !is_drain_unknown(gate)) await_start(gate);
    turn_request_give_back(&gate->request, turn_remaining(&gate->turn, clock_now()), false);
    card_turn_ask_next(&gate->request, gate->turn.expected);
}

/* Whether the next turn can begin while the work of this one drains: only the arbiter limits the process, and does not
 * ask the turn back. */
static bool may_overlap(const struct gate *gate) {
    return gate->request.arbiter_turn.number && gate->request.share >= FULL_CORES && !has_no_estimate(gate) &&
           turn_remaining(&gate->turn, clock_now()) > NEXT_TURN_TIMEOUT && !card_turn_is_asked_to_yield(&gate->request);
}

/* Waiting for the drain would leave the host without its lead over the card at the end of each turn. */
static bool goes_on(struct gate *gate, bool is_arbiter_turn_kept, bool may_go_on) {
    if (!may_go_on) return false;
    if (is_arbiter_turn_kept && gate->request.arbiter_turn.number) return true;
    return card_turn_await_next(&gate->request, NEXT_TURN_TIMEOUT);
}

/* Before the arbiter's turn is given back. */
static enum drain await_unknown_drain(struct gate *gate, bool is_arbiter_turn_kept, uint64_t need) {
    if (is_arbiter_turn_kept || !gate->request.arbiter_turn.number || !is_drain_unknown(gate)) return DRAIN_TIMED_OUT;
    return gate_measure_await_drain(gate, need, clock_now() + UNKNOWN_DRAIN_TIMEOUT);
}

static void count_end(const struct gate *gate) {
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
}

/* The ends before the first loan stay recorded until they are over, so that it is known what those launches took. */
static bool records_ends(struct gate *gate) {
    return !early_launches_may_be_awaited(&gate->turn.early) && turn_events_record_ends(gate_events(gate), NULL);
}

/* False: the work does not drain, and the turn goes on. */
static bool end_direct_turn(struct gate *gate, bool is_arbiter_turn_kept, bool may_go_on, uint64_t need) {
    gate->host.has_left_gap = is_host_bound_now(gate);
    bool is_drained = is_known_drained(gate);
    uint64_t ends_recorded_at = !is_drained && records_ends(gate) ? clock_now() : 0;
    if (await_unknown_drain(gate, is_arbiter_turn_kept, need) == DRAIN_STAYS) return false;
    give_back(gate, is_arbiter_turn_kept);
    if (goes_on(gate, is_arbiter_turn_kept, may_go_on && ends_recorded_at)) {
        count_end(gate);
        gate_measure_set_aside(gate, ends_recorded_at);
        return true;
    }
    if (!is_drained && gate_measure_await_drain(gate, need, UINT64_MAX) == DRAIN_STAYS) return false;
    count_end(gate);
    turn_request_end(&gate->request, is_drained ? gate->turn.expected : gate_measure_turn(gate, ends_recorded_at));
    turn_events_reset(gate_events(gate));
    return true;
}

/* The arbiter's turn goes on if only our part of it has to be measured. */
static bool is_arbiter_turn_kept(const struct gate *gate, enum verdict verdict) {
    return verdict == VERDICT_UNMEASURED || turn_request_is_unbounded(&gate->request, gate->turn.expected);
}

void gate_turns_count_passed(struct gate *gate, uint64_t now) {
    struct passed_launches passed = joint_pass_take(&gate->joint_pass);
    turn_add_passed(&gate->turn, passed.launches, passed.used_ns, now);
}

/* The estimates are charged: times between events contain the others' time slices. */
static void note_joint_end(struct gate *gate) {
    gate->host.has_left_gap = false;
    joint_pass_close(&gate->joint_pass);
    gate_turns_count_passed(gate, clock_now());
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
}

/* Without a heartbeat the arbiter's turn is no reason to go on. */
bool gate_turns_is_joint_to_go_on(const struct gate *gate, enum verdict verdict) {
    return card_turn_is_joint(&gate->request) && gate->turn.limits.is_joint && !gate->turn.is_unknown &&
           verdict == VERDICT_FULL && !card_turn_is_asked_to_yield(&gate->request) &&
           arbiter_link_contention(&gate->request.link) == CONTENTION_ARBITRATED;
}

void gate_turns_charge_joint(struct gate *gate, bool is_sample_over) {
    gate_measure_collect(gate);
    note_joint_end(gate);
    if (is_sample_over) {
        gate_measure_learn_beside(gate);
        turn_events_end_sample(gate_events(gate));
    }
    container_turn_charge(&gate->request, turn_renew(&gate->turn, clock_now()));
}

static void end_joint_turn(struct gate *gate, bool is_kept) {
    note_joint_end(gate);
    gate_measure_learn_beside(gate);
    give_back(gate, is_kept);
    turn_request_end(&gate->request, turn_uncharged(&gate->turn));
    turn_events_reset(gate_events(gate));
}

bool gate_turns_end(struct gate *gate, enum verdict verdict, uint64_t need) {
    bool is_asked_to_yield = card_turn_is_asked_to_yield(&gate->request);
    gate_measure_collect(gate);
    bool is_kept = is_arbiter_turn_kept(gate, verdict) && !is_asked_to_yield;
    if (gate->turn.limits.is_joint && !gate->turn.is_unknown) {
        end_joint_turn(gate, is_kept);
        return true;
    }
    return end_direct_turn(gate, is_kept, verdict != VERDICT_UNMEASURED && may_overlap(gate), need);
}

/* Draws the launch to be sampled from as many launches as the last turn had. A fixed one would not be typical: the
 * first finds the card idle and the caches cold. */
void gate_turns_draw_sample(struct gate *gate) {
    struct turn_sample *sample = &gate->turn_sample;
    sample->random = sample->random * 1664525U + 1013904223U; /* Numerical Recipes, section 7.1 */
    sample->is_chosen = false;
    sample->index = gate->turn.launches ? (sample->random >> 8) % gate->turn.launches : 0;
}

void gate_turns_begin(struct gate *gate, struct turn_limits limits) {
    bool is_behind_own_work = gate->set_aside.is_valid || gate->is_queue_turn || gate->turn.limits.is_joint;
    uint64_t drains_at = is_behind_own_work ? gate->turn.drains_at : 0;
    gate->turn = turn_open(clock_now(), limits);
    gate->turn.early.assumed_ns = gate->assumed_ns;
    turn_set_free_at(&gate->turn, max_u64(drains_at, card_turn_free_at(&gate->request)));
}

void gate_turns_apply_probe(struct gate *gate, CUevent probe, bool is_passed) {
    if (gate->phase != GATE_OPEN || turn_events_probe(gate_events(gate)) != probe) return;
    if (is_passed) turn_events_drop_probe(gate_events(gate));
    turn_apply_probe(&gate->turn, is_passed, clock_now());
    container_turn_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
}

uint64_t gate_turns_room_in(const struct gate *gate) {
    uint64_t rest = turn_remaining(&gate->turn, clock_now()), depth = gate->turn.limits.depth;
    uint64_t next = rest > YIELD_CHECK_LEAD ? max_u64(depth, YIELD_CHECK_LEAD) : depth;
    return min_u64(rest > next ? rest - next : POLL_MIN, POLL_MAX);
}
