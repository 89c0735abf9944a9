#include "compute/gate_teardown.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "compute/arbiter_link.h"
#include "compute/gate_queue.h"
#include "compute/gate_state.h"
#include "compute/queue_page.h"
#include "compute/turn.h"
#include "compute/turn_events.h"
#include "compute/turn_request.h"
#include "process/fork.h"

static void record_stream_end(struct gate *gate, CUstream stream) {
    gate_lock(gate);
    if (gate->phase == QUEUING || gate->is_queue_turn) turn_events_drop_end(gate_events(gate), stream);
    bool is_claimed = turn_events_has_unrecorded_end(gate_events(gate), stream) && gate_claim(gate);
    gate_unlock(gate);
    if (!is_claimed) return;
    turn_events_record_ends(gate_events(gate), stream);
    gate_lock(gate);
    gate_set_phase(gate, OPEN);
    gate_unlock(gate);
}

void gate_teardown_stream(CUstream stream) {
    if (!stream || !gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) record_stream_end(gate_at(i), stream);
}

/* Copies the events to the heap, because they take too much room for a thread's stack, and clears the originals. The
 * caller frees the copy of both; NULL if memory is out: then the CUDA events are leaked. The caller holds LOCK_GATE. */
static struct turn_events *detach_events(struct gate *gate) {
    struct turn_events *copy = malloc(sizeof gate->events);
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

/* The events that would measure the turn are destroyed with their contexts, so its launches are charged by their
 * estimates. */
static void end_turn(struct gate *gate) {
    gate_queue_flush(gate);
    gate_lock(gate);
    bool is_claimed = gate_claim(gate);
    gate_unlock(gate);
    if (is_claimed) gate_await_launches(gate);
    gate_lock(gate);
    struct turn_events *events = is_claimed || gate->phase != CLOSING ? detach_events(gate) : NULL;
    gate_unlock(gate);
    destroy_events(events);
    if (!is_claimed) return;
    turn_request_give_back(&gate->request, turn_remaining(&gate->turn, clock_now()));
    turn_request_end(&gate->request, gate->turn.expected);
    gate_lock(gate);
    gate_set_phase(gate, SHUT);
    gate_unlock(gate);
}

void gate_teardown_contexts(void) {
    if (!gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) end_turn(gate_at(i));
    queue_page_release();
    for (int i = 0; i < GATES; i++) {
        if (!gate_at(i)) continue;
        gate_lock(gate_at(i)); /* no thread reads the page any more */
        gate_unlock(gate_at(i));
    }
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
