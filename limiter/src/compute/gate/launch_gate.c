#include "compute/gate/launch_gate.h"

#include "common/clock.h"
#include "compute/gate/gate_queue.h"
#include "compute/gate/gate_state.h"
#include "compute/gate/gate_turns.h"
#include "compute/gate/turn_need.h"
#include "compute/link/turn_request.h"
#include "compute/queue/queue_page.h"
#include "compute/turn/estimates.h"
#include "compute/turn/suitable_turn.h"
#include "compute/turn/turn.h"
#include "driver/function_table.h"
#include "loader/libc.h"
#include "region/activity.h"

uint64_t launch_gate_kernel_key(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z) {
    unsigned shape[6] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    return estimates_key(function, shape);
}

uint64_t launch_gate_graph_key(CUgraphExec graph) { return estimates_key(graph, NULL); }

/* What every admitted launch does. The caller holds LOCK_GATE. */
static void note_admitted(struct gate *gate, uint64_t key, uint64_t estimate, const struct launch_slot *slot,
                          uint64_t now) {
    if (slot->is_sampled) gate->sample_key = key;
    gate->has_sample |= slot->is_sampled;
    gate->last_launch_at = now;
    __atomic_store_n(&gate->is_host_waiting, false, __ATOMIC_RELAXED);
    backlog_note_launch(&gate->backlog, turn_remaining(&gate->turn, now) + gate->segments.closed_ns, now);
    gate->launches_in_driver++;
    host_periods_note_launch(&gate->periods, estimate, now);
    gate_queue_note_launch(gate, estimate);
    activity_note_launch(turn_request_activity(&gate->request), now);
}

/* Decides on one launch and, if it fits, adds it to the turn. A turn's first launch is admitted even if there is no
 * room for its events, so that every turn makes progress. The caller holds LOCK_GATE. */
static enum verdict admit_to_turn(struct gate *gate, bool is_known, const struct queued_launch *launch, uint64_t now,
                                  struct launch_slot *slot) {
    bool is_first = gate->turn.launches == 0;
    if (!is_first && turn_request_is_asked_to_yield(&gate->request)) return VERDICT_FULL;
    enum verdict verdict = turn_judge(&gate->turn, is_known, launch->estimate, now);
    if (verdict != VERDICT_FITS) return verdict;
    if (!turn_events_find_slot(gate_events(gate), launch->context, launch->stream, slot) && !is_first)
        return VERDICT_UNMEASURED;
    slot->is_sampled = !gate->has_sample && (!is_known || gate->turn.launches == gate->sample_index);
    turn_add(&gate->turn, is_known, launch->estimate, now);
    gate->turn.is_doubtful |= launch->is_doubtful;
    slot->records_end_at_once = gate->is_host_bound;
    slot->probe_out = slot->context_events && turn_is_to_be_probed(&gate->turn) ? &gate_events(gate)->probe : NULL;
    if (slot->probe_out) turn_note_probe(&gate->turn);
    turn_request_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    return VERDICT_FITS;
}

/* A launch without an estimate is measured alone, and in a context without a page nothing can be queued: such a launch
 * waits until nothing is queued before it. The caller holds LOCK_GATE. */
static enum verdict admit_to_queue(struct gate *gate, bool is_known, const struct queued_launch *launch, uint64_t now,
                                   struct launch_slot *slot) {
    if (is_known && queue_page_has(launch->context)) return gate_queue_admit(gate, launch, now, slot);
    return gate->phase == QUEUING || segments_any_closed(&gate->segments) ? VERDICT_TOO_DEEP : VERDICT_UNMEASURED;
}

/* While a turn opens or closes, the estimates belong to the thread that does so, without the lock. The caller holds
 * LOCK_GATE. */
static enum verdict admit(struct gate *gate, uint64_t key, CUcontext context, CUstream stream,
                          struct launch_slot *slot) {
    if (gate->phase == OPENING || gate->phase == CLOSING) return VERDICT_FULL;
    uint64_t expected = 0, now = clock_now();
    bool is_known = estimates_of(&gate->estimates, key, &expected);
    if (gate->phase == SHUT) return is_known ? VERDICT_FULL : VERDICT_UNMEASURED;
    struct queued_launch launch = {key, expected, estimates_is_doubtful(&gate->estimates, key), context, stream};
    enum verdict verdict = gate->phase == QUEUING || gate->is_queue_turn
                               ? admit_to_queue(gate, is_known, &launch, now, slot)
                               : admit_to_turn(gate, is_known, &launch, now, slot);
    if (verdict == VERDICT_FITS) note_admitted(gate, key, expected, slot, now);
    return verdict;
}

/* How much work has to be in flight for a launch to be held back; 0: it waits for a turn. */
static uint64_t depth_of(const struct gate *gate, enum verdict verdict) {
    if (verdict != VERDICT_TOO_DEEP) return 0;
    return gate->phase == OPEN && !gate->is_queue_turn ? gate->turn.limits.depth : UINT64_MAX;
}

static void wait_for_admission(struct gate *gate, uint64_t key, CUcontext context, CUstream stream,
                               struct launch_slot *slot) {
    uint64_t waiting_since = 0;
    enum verdict verdict;
    gate_note_used();
    HOLD_GATE(gate);
    backlog_note_arrival(&gate->backlog, clock_now());
    arbiter_link_note_suitable_turn(&gate->request.link,
                                    suitable_turn(gate->backlog.known_ns, host_periods_step_ns(&gate->periods)));
    while ((verdict = admit(gate, key, context, stream, slot)) != VERDICT_FITS) {
        if (!waiting_since) waiting_since = clock_now();
        backlog_note_held_back(&gate->backlog, depth_of(gate, verdict));
        gate_turns_step(gate, verdict);
    }
    if (waiting_since) {
        host_periods_note_wait(&gate->periods, clock_now() - waiting_since);
        turn_request_count_wait(&gate->request, clock_now() - waiting_since);
    }
}

struct launch_pass launch_gate_enter(uint64_t key, CUstream stream) {
    struct launch_pass pass = {0};
    CUcontext context = NULL;
    struct gate *gate = gate_of_current_context();
    if (!gate || !turn_need_is_at_gate(gate) || turn_events_is_capturing(stream)) return pass;
    if (REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context) return pass;
    LIBC(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &pass.cancel_state);
    wait_for_admission(gate, key, context, stream, &pass.slot);
    pass.gate = gate;
    if (pass.slot.reads_sample) gate_queue_read_sample(gate);
    turn_events_before_launch(&pass.slot);
    return pass;
}

static void note_left_driver(struct gate *gate) {
    HOLD_GATE(gate);
    gate_note_left_driver(gate);
}

void launch_gate_leave(const struct launch_pass *pass) {
    if (!pass->gate) return;
    turn_events_after_launch(&pass->slot);
    note_left_driver(pass->gate);
    LIBC(pthread_setcancelstate)(pass->cancel_state, NULL);
}
