/* What launches leave behind ends: streams, contexts, and in a forked child everything. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "compute/gate_state.h"
#include "compute/launch_gate.h"

static void end_stream(struct gate *gate, CUstream stream) {
    pthread_mutex_lock(&gate->mutex);
    bool is_mine = turn_events_are_due(&gate->events, stream) && gate_claim(gate);
    pthread_mutex_unlock(&gate->mutex);
    if (!is_mine) return;
    turn_events_record_ends(&gate->events, stream);
    pthread_mutex_lock(&gate->mutex);
    gate_set_phase(gate, OPEN);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_teardown_stream(CUstream stream) {
    if (!stream || !launch_gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) end_stream(gate_at(i), stream);
}

/* For the caller to free; NULL without memory, and then the events are lost. A thread's stack may be too small for it.
 */
static struct turn_events *taken(struct turn_events *events) {
    struct turn_events *copy = malloc(sizeof *copy);
    if (copy) *copy = *events;
    memset(events, 0, sizeof *events);
    return copy;
}

/* What is in flight is charged as it is expected to be: the events that would say it go with their contexts. */
static void end_turn(struct gate *gate) {
    pthread_mutex_lock(&gate->mutex);
    bool is_mine = gate_claim(gate);
    pthread_mutex_unlock(&gate->mutex);
    if (is_mine) gate_await_passing(gate);
    pthread_mutex_lock(&gate->mutex);
    struct turn_events *events = is_mine || gate->phase != CLOSING ? taken(&gate->events) : NULL;
    pthread_mutex_unlock(&gate->mutex);
    if (events) turn_events_destroy(events);
    free(events);
    if (!is_mine) return;
    turn_request_stop(&gate->request, turn_remaining(&gate->turn, clock_now()));
    turn_request_end(&gate->request, gate->turn.expected);
    pthread_mutex_lock(&gate->mutex);
    gate_set_phase(gate, SHUT);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_teardown_contexts(void) {
    if (!launch_gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) end_turn(gate_at(i));
}

static void forget(struct gate *gate) {
    struct turn_request request = {0};
    memcpy(request.uuid, gate->request.uuid, sizeof request.uuid);
    arbiter_link_forget(&gate->request.link);
    memset(gate, 0, sizeof *gate);
    gate->request = request;
}

void gate_forget(void) {
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) forget(gate_at(i));
    gate_forget_use();
    gate_forget_judgement();
}
