#include "compute/gate/gate_teardown.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "compute/gate/gate_measure.h"
#include "compute/gate/gate_queue.h"
#include "compute/gate/gate_state.h"
#include "compute/gate/queue_pace.h"
#include "compute/link/arbiter_link.h"
#include "compute/link/turn_request.h"
#include "compute/queue/queue_page.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/turn.h"
#include "process/fork.h"
#include "process/lock.h"

/* The caller holds LOCK_GATE, which is released meanwhile. */
static void end_stream(struct gate *gate, CUstream stream) {
    if (gate->phase == QUEUING || gate->is_queue_turn) turn_events_drop_end(gate_events(gate), stream);
    if (gate->phase != OPEN || !turn_events_has_unrecorded_end(gate_events(gate), stream)) return;
    gate->phase = CLOSING;
    {
        RELEASE_GATE(gate);
        turn_events_record_ends(gate_events(gate), stream);
    }
    gate_set_phase(gate, OPEN);
}

static void record_stream_end(struct gate *gate, CUstream stream) {
    HOLD_GATE(gate);
    if (gate_await_closed(gate)) end_stream(gate, stream);
}

void gate_teardown_stream(CUstream stream) {
    if (!stream || !gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) record_stream_end(gate_at(i), stream);
}

/* Copies the events to the heap, because they take too much room for a thread's stack, and clears the originals. The
 * caller frees the copy of both. NULL, and the CUDA events are leaked, if memory is out or a launch that stays in the
 * driver may use them. The caller holds LOCK_GATE, which is not released before the launches have left the driver. */
static struct turn_events *detach_events(struct gate *gate) {
    struct turn_events *copy = gate->launches_in_driver ? NULL : malloc(sizeof gate->events);
    if (copy) memcpy(copy, gate->events, sizeof gate->events);
    memset(gate->events, 0, sizeof gate->events);
    gate->set_aside.is_valid = gate->has_ends = false;
    gate->sample = (struct queue_sample){0};
    return copy;
}

static void destroy_events(struct turn_events *events) {
    for (int i = 0; events && i < 2; i++) turn_events_destroy(&events[i]);
    free(events);
}

/* Keeps launches out: the phase is CLOSING then, and the caller its owner, or OPENING. Returns the phase before;
 * CLOSING if another thread has been closing the turn for too long. The caller holds LOCK_GATE, which is released
 * meanwhile. */
static enum phase stop_launches(struct gate *gate) {
    enum phase before;
    do {
        before = gate_await_closed(gate) ? gate->phase : CLOSING;
        if (before != OPENING) gate->phase = CLOSING;
        if (before != CLOSING) gate_await_launches(gate);
    } while (before == OPENING && gate->phase != OPENING);
    queue_pace_release_all(gate);
    return before;
}

/* Takes away the events of a gate without launches. The caller holds LOCK_GATE, which is released meanwhile. */
static void drop_events(struct gate *gate) {
    struct turn_events *events = detach_events(gate);
    RELEASE_GATE(gate);
    destroy_events(events);
}

/* The events that would measure the turns are destroyed with their contexts, so their launches are charged by their
 * estimates. The caller owns the gate, and holds LOCK_GATE, which is released meanwhile. */
static void charge_by_estimates(struct gate *gate, bool is_open) {
    gate_measure_drop(gate);
    if (!is_open) return;
    RELEASE_GATE(gate);
    turn_request_give_back(&gate->request, turn_remaining(&gate->turn, clock_now()), false);
    turn_request_end(&gate->request, gate->turn.expected);
}

static void end_turn(struct gate *gate) {
    HOLD_GATE(gate);
    gate_queue_flush(gate);
    enum phase before = stop_launches(gate);
    if (before == OPENING) drop_events(gate);
    if (before != OPENING && before != CLOSING) {
        charge_by_estimates(gate, before == OPEN);
        drop_events(gate);
        gate_set_phase(gate, SHUT);
    }
}

/* Returns when the thread that held LOCK_GATE, if any, has released it. */
static void await_holder(struct gate *gate) { HOLD_GATE(gate); }

/* Other threads may have queued launches since the turns ended, behind words of these pages. Under a lock, because a
 * page must not be written when another thread, which ends its context, has returned from here. */
static void release_pages(int device, CUcontext context, struct hidden_pages *pages) {
    HOLD_LOCK(LOCK_HIDDEN_PAGES);
    queue_page_hide(device, context, pages);
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) await_holder(gate_at(i));
    queue_page_open_hidden(pages);
}

void gate_teardown_contexts(int device, CUcontext context, struct hidden_pages *pages) {
    *pages = (struct hidden_pages){0};
    if (!gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i) && (device < 0 || device == i)) end_turn(gate_at(i));
    release_pages(device, context, pages);
}

static void forget(struct gate *gate) {
    struct turn_request request = {0};
    memcpy(request.uuid, gate->request.uuid, sizeof request.uuid);
    arbiter_link_forget(&gate->request.link);
    unsigned index = gate->index;
    memset(gate, 0, sizeof *gate);
    gate->request = request;
    gate->index = index;
}

static void forget_in_child(void) {
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) forget(gate_at(i));
}
FORGET_IN_CHILD(forget_in_child);
