/* What launches leave behind ends: streams, contexts, and in a forked child everything. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "compute/gate_state.h"
#include "compute/launch_gate.h"

static void end_stream(struct gate *gate, CUstream stream) {
    pthread_mutex_lock(&gate->mutex);
    bool is_mine = marks_are_due(&gate->marks, stream) && gate_claim(gate);
    pthread_mutex_unlock(&gate->mutex);
    if (!is_mine) return;
    marks_end(&gate->marks, stream);
    pthread_mutex_lock(&gate->mutex);
    gate_set_phase(gate, OPEN);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_end_stream(CUstream stream) {
    if (!stream || !gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) end_stream(gate_at(i), stream);
}

/* For the caller to free; NULL without memory, and then the events are lost. A thread's stack may be too small for it.
 */
static struct marks *taken(struct marks *marks) {
    struct marks *copy = malloc(sizeof *copy);
    if (copy) *copy = *marks;
    memset(marks, 0, sizeof *marks);
    return copy;
}

/* What is in flight is charged as it is expected to be: the events that would say it go with their contexts. */
static void end_turn(struct gate *gate) {
    pthread_mutex_lock(&gate->mutex);
    bool is_mine = gate_claim(gate);
    pthread_mutex_unlock(&gate->mutex);
    if (is_mine) gate_await_passing(gate);
    pthread_mutex_lock(&gate->mutex);
    struct marks *marks = is_mine || gate->phase != CLOSING ? taken(&gate->marks) : NULL;
    pthread_mutex_unlock(&gate->mutex);
    if (marks) marks_destroy(marks);
    free(marks);
    if (!is_mine) return;
    lease_stop(&gate->lease, turn_rest(&gate->turn, moment_now()));
    lease_end(&gate->lease, gate->turn.expected);
    pthread_mutex_lock(&gate->mutex);
    gate_set_phase(gate, SHUT);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_end_contexts(void) {
    if (!gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) end_turn(gate_at(i));
}

static void forget(struct gate *gate) {
    struct lease lease = {0};
    memcpy(lease.uuid, gate->lease.uuid, sizeof lease.uuid);
    link_forget(&gate->lease.link);
    memset(gate, 0, sizeof *gate);
    gate->lease = lease;
}

void gate_forget(void) {
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) forget(gate_at(i));
    gate_forget_use();
    gate_forget_judgement();
}
