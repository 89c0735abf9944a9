/* Waits of the host for the card. What was queued ahead of its turn needs the turn then, and nothing is launched before
 * its work has drained. */
#ifndef VGPU_COMPUTE_GATE_HOST_WAIT_H
#define VGPU_COMPUTE_GATE_HOST_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct gate;

struct host_wait {
    struct gate *gate; /* NULL: no launch needs turns */
    uint64_t since;
    bool ends_period; /* of the gate's host_periods, with launches that were queued */
};

/* The calling thread is about to wait for the card: the turn of what is queued is asked for, and a host-bound program's
 * turn is given back. Takes LOCK_GATE. Called before any driver function that may block. */
struct host_wait host_wait_begin(void);

/* The calling thread is about to call a driver function that makes the card copy, and does not wait for it. Takes
 * LOCK_GATE. */
void host_wait_note_copy(void);

/* The wait is over: the card was busy until now. Takes LOCK_GATE. */
void host_wait_end(const struct host_wait *wait);

#endif
