/* The state of a launch gate: one for each card that this process launches on. launch_gate.c admits launches through
 * it, gate_turns.c opens and closes its turns, gate_teardown.c ends its turn before streams and contexts are destroyed.
 */
#ifndef VGPU_COMPUTE_GATE_GATE_STATE_H
#define VGPU_COMPUTE_GATE_GATE_STATE_H

#include "compute/link/turn_request.h"
#include "compute/queue/queue_sample.h"
#include "compute/queue/segments.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/backlog.h"
#include "compute/turn/estimates.h"
#include "compute/turn/host_periods.h"
#include "compute/turn/turn.h"
#include "process/mutex.h"

/* SHUT: there is no turn. OPENING: a thread waits for the next turn; meanwhile `request` is its own, without the mutex.
 * OPEN: launches are admitted. CLOSING: a thread ends or measures a turn; meanwhile it owns `request`, `turn`,
 * `estimates`, `events`, `set_aside` and what else it learns from them, without the mutex.
 * Only the thread that sets OPENING or CLOSING sets the next phase.
 * QUEUING: there is no turn, and launches go to the card behind a closed wait (gate_queue.h). `request` then belongs to
 * the gate's thread. */
enum phase { SHUT, OPENING, OPEN, CLOSING, QUEUING };

/* A turn that is over for launches, and is to be measured when its work has drained. */
struct set_aside_turn {
    bool is_valid;
    bool has_ends; /* its end events were recorded */
    uint64_t ends_recorded_at;
    uint64_t sample_key;
    struct turn turn;
};

struct gate {           /* NOLINT(clang-analyzer-optin.performance.Padding): in the order of their meaning */
    struct mutex mutex; /* LOCK_GATE; guards every field that is not atomic. Never held across a call of the
                           driver's or while a thread waits for a turn */
    uint32_t changes;   /* atomic; futex word, counts: the phase has changed, or a launch has left the driver */
    unsigned waiters;   /* threads that wait for a change */
    enum phase phase;   /* see `enum phase` */
    unsigned launches_in_driver; /* launches between launch_gate_enter and launch_gate_leave, and queries of the probe;
                                    they use entries of `events` without the mutex */
    bool are_launches_awaited;   /* a thread may wait until none is in the driver */
    bool has_sample;             /* a launch of this turn is timed alone */
    uint64_t sample_key;         /* the estimates key of the launch that is timed alone in this turn */
    unsigned sample_index;   /* which launch of the turn is timed alone, unless one without an estimate comes before */
    uint32_t random_state;   /* of the generator that draws `sample_index` */
    bool was_interrupted;    /* the last measured turn; see turn_is_interrupted */
    unsigned drain_timeouts; /* turns in a row whose work had not drained when their timeout was over */
    uint64_t next_check_at;  /* atomic; clock_ticks() at which `has_share` is to be refreshed, 0 = at once */
    bool has_share;          /* atomic; the container has a fixed share of the card, as of the last refresh */
    bool is_host_bound;      /* at the end of the last turn the card had been idle, waiting for launches */
    struct turn_request request;
    struct turn turn;
    struct estimates estimates;
    struct turn_events events[2]; /* of the turn and of the one that was set aside; see gate_events */
    unsigned open_events;         /* index of the turn's events */
    struct set_aside_turn set_aside;
    struct host_periods periods;
    struct backlog backlog;
    unsigned index;           /* CUDA device ordinal of the gate */
    struct segments segments; /* what was queued; closed ones in the phases QUEUING and OPEN only */
    struct queue_sample sample;
    uint64_t first_segment;    /* number of the first segment of the turn */
    uint64_t progress_at;      /* when the card was last seen to begin a segment */
    uint64_t queued_since;     /* when the phase QUEUING began */
    uint64_t depth;            /* GPU time that may be in flight, as of the last turn; 0 = there was none */
    uint64_t last_launch_at;   /* of an admitted launch */
    uint64_t launch_ns;        /* average GPU time of a launch */
    bool is_queue_turn;        /* the launches of the turn belong to segments */
    bool is_host_bound_period; /* the program was host-bound when it last waited for the card, or began to queue */
    bool is_turn_wanted;       /* the turn is to be asked for at once */
    bool is_turn_awaited;      /* the gate's thread waits for the turn, so `request` is its own in every phase */
    bool is_host_waiting;      /* atomic; the host has waited for the card since its last launch */
    bool has_ends;             /* the ends of the last queued turn were recorded as the turn was given back */
    bool has_thread;           /* the gate's thread was started (gate_queue.h) */
    bool is_thread_running;    /* the gate's thread has begun */
};

/* The events of the turn. */
#define gate_events(gate) (&(gate)->events[(gate)->open_events])

/* One gate for each CUDA device ordinal below this number. */
enum { GATES = REGION_CARDS };

/* A launch of this process needs a turn. */
void gate_note_used(void);

/* Whether any launch of this process has ever needed a turn. If not, there is nothing to tear down, and no turn to ask
 * for. */
bool gate_is_used(void);

/* Takes LOCK_GATE of this gate. */
void gate_lock(struct gate *gate);

/* Releases LOCK_GATE of this gate. */
void gate_unlock(struct gate *gate);

/* Takes LOCK_GATE of the gate and holds it to the end of the enclosing block, by whichever way that is left. */
#define HOLD_GATE(pointer) __attribute__((cleanup(gate_drop), unused)) struct gate *const held_gate = gate_hold(pointer)

static inline struct gate *gate_hold(struct gate *gate) {
    gate_lock(gate);
    return gate;
}

static inline void gate_drop(struct gate *const *held) { gate_unlock(*held); }

/* The opposite, for a thread that holds LOCK_GATE: releases it, and takes it again at the end of the enclosing block.
 */
#define RELEASE_GATE(pointer) \
    __attribute__((cleanup(gate_retake), unused)) struct gate *const free_gate = gate_let_go(pointer)

static inline struct gate *gate_let_go(struct gate *gate) {
    gate_unlock(gate);
    return gate;
}

static inline void gate_retake(struct gate *const *released) { gate_lock(*released); }

/* Waits for the next turn (turn_request_take). The caller holds LOCK_GATE, which is released meanwhile. */
struct turn_limits gate_take_turn(struct gate *gate);

/* The gate of a CUDA device ordinal, NULL if none was created. Takes no lock. Gates are never freed. */
struct gate *gate_at(int device);

/* The gate of a CUDA device ordinal, created if there is none; NULL if the ordinal is too large, the driver does not
 * know it or memory is out. Takes no lock; may call the driver. */
struct gate *gate_ensure(int device);

/* The gate of the device of the calling thread's context; NULL without a context, or as gate_ensure. */
struct gate *gate_of_current_context(void);

/* The counters of the card of the calling thread's context; NULL as gate_of_current_context, or as long as no launch of
 * this process has needed a turn. Takes no lock. */
struct region_activity *gate_activity(void);

/* Waits until no admitted launch is inside the driver, for at most 100 ms; whether that was reached. The caller holds
 * LOCK_GATE, which is released while it waits. */
bool gate_await_launches(struct gate *gate);

/* A launch, or a query of the probe, has left the driver. The caller holds LOCK_GATE. */
void gate_note_left_driver(struct gate *gate);

/* Waits until no thread is closing the turn, for at most one second; whether that was reached. The caller holds
 * LOCK_GATE, which is released while it waits. */
bool gate_await_closed(struct gate *gate);

/* Waits for a change, for at most `ns`. The caller holds LOCK_GATE, which is released meanwhile. */
void gate_await_change(struct gate *gate, uint64_t ns);

/* Wakes every thread that waits for a change. The caller holds LOCK_GATE. */
void gate_note_change(struct gate *gate);

/* Sets the phase and wakes every thread that waits for a change. The caller holds LOCK_GATE. */
void gate_set_phase(struct gate *gate, enum phase phase);

#endif
