#include "compute/gate/host_wait.h"

#include "common/clock.h"
#include "compute/gate/gate_drive.h"
#include "compute/gate/gate_state.h"

struct host_wait host_wait_begin(void) {
    struct host_wait wait = {0};
    if (gate_is_used()) wait.gate = gate_of_current_context();
    if (!wait.gate) return wait;
    wait.since = clock_now();
    wait.ends_period = gate_drive_begin_wait(wait.gate, wait.since);
    return wait;
}

void host_wait_note_copy(void) {
    struct gate *gate = gate_is_used() ? gate_of_current_context() : NULL;
    if (gate) gate_drive_note_copy(gate);
}

void host_wait_end(const struct host_wait *wait) {
    if (wait->gate) gate_drive_end_wait(wait->gate, wait->since, wait->ends_period);
}
