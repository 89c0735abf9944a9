/* A gate's inside: one card's turns in this process. */
#ifndef VGPU_COMPUTE_GATE_STATE_H
#define VGPU_COMPUTE_GATE_STATE_H

#include <pthread.h>

#include "compute/estimates.h"
#include "compute/turn.h"
#include "compute/turn_events.h"
#include "compute/turn_request.h"

/* Who sets OPENING or CLOSING has the gate to himself until he sets another; while it is OPENING the events are
 * nobody's.
 */
enum phase { SHUT, OPENING, OPEN, CLOSING };

/* The mutex guards the fields; it is never held across a call of the driver's, nor while waiting for the turn. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum phase phase;
    unsigned launches_in_driver; /* launches between `launch_gate_enter` and `launch_gate_leave` */
    uint64_t sample_key;         /* the key of the launch that is measured alone */
    unsigned sample_index;       /* which of the turn's that is to be, unless an unknown one comes before it */
    uint32_t random_state;       /* at random, last */
    unsigned drain_timeouts;     /* how often in a row the card was not done in time */
    uint64_t next_check_at;      /* atomically: when it is to be looked at again, in ticks; 0 = at once */
    bool has_share;              /* atomically: the container is held to a share of it, as of the last look */
    bool is_host_bound;          /* at the last turn's end the card had waited for launches */
    struct turn_request request;
    struct turn turn;
    struct estimates estimates;
    struct turn_events events;
};

enum { GATES = REGION_CARDS };

void gate_lock(struct gate *gate);
void gate_unlock(struct gate *gate);

/* The gate of a CUdevice as far as it has one; and with one made for it, NULL where there is no room. Never freed. */
struct gate *gate_at(int device);
struct gate *gate_ensure(int device);

/* The gate of the current context's device, NULL where there is none. */
struct gate *gate_of_current_context(void);

/* Without the mutex. Lets the launches that are inside the driver come out, within a tenth of a second; whether all
 * did. */
bool gate_await_launches(struct gate *gate);

/* The functions below are called with the mutex held, which they may let go meanwhile. */

/* Gives the caller an open turn to himself, which is then CLOSING; one that is being closed is waited for. */
bool gate_claim(struct gate *gate);

/* Until something changes, or for so many ns. */
void gate_await_change(struct gate *gate, uint64_t ns);

void gate_set_phase(struct gate *gate, enum phase phase);

#endif
