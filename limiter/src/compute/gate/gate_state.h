/* The state of a launch gate: one for each card that this process launches on. gate_machine.h says what its phases
 * mean, and gate_drive.c, which alone takes and releases its lock, leads it from phase to phase.
 */
#ifndef VGPU_COMPUTE_GATE_GATE_STATE_H
#define VGPU_COMPUTE_GATE_GATE_STATE_H

#include "common/arithmetic.h"
#include "compute/gate/gate_machine.h"
#include "compute/gate/joint_pass.h"
#include "compute/link/turn_request.h"
#include "compute/queue/queue_sample.h"
#include "compute/queue/segments.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/backlog.h"
#include "compute/turn/estimates.h"
#include "compute/turn/host_periods.h"
#include "compute/turn/turn.h"
#include "process/mutex.h"

/* Which launch of a turn is timed alone. */
struct turn_sample {
    bool is_chosen;    /* a launch of this turn is timed alone */
    bool is_in_driver; /* it has not left the driver: its thread still writes its events */
    uint64_t key;      /* its estimates key */
    bool is_early;     /* it was admitted early (early_launches.h) */
    unsigned index;    /* which launch of the turn it is, unless one without an estimate comes before */
    uint32_t random;   /* state of the generator that draws `index` */
};

/* A turn that is over for launches, and is to be measured when its work has drained. */
struct set_aside_turn {
    bool is_valid;
    bool has_ends; /* its end events were recorded */
    uint64_t ends_recorded_at;
    struct turn_sample sample;
    struct turn turn;
};

/* The gate's own thread, which asks for turns of queued launches and opens them. THREAD_STARTED: it may never begin. */
enum gate_thread { THREAD_NONE, THREAD_STARTED, THREAD_RUNS };

/* What is queued on the card ahead of its turn, and how far the card is. */
struct gate_queue {
    struct segments segments; /* closed ones in the phases in which launches are queued, and OPEN_QUEUE, only */
    struct queue_sample sample;
    uint64_t first_segment; /* number of the first segment of the turn */
    uint64_t progress_at;   /* when the card was last seen to begin a segment */
    uint64_t since;         /* when launches began to be queued */
    uint64_t depth;         /* GPU time that may be in flight, as of the last turn; 0 = there was none */
    uint64_t launch_ns;     /* average GPU time of a launch */
    enum gate_thread thread;
};

/* What the program's host does. */
struct gate_host {
    struct host_periods periods;
    struct backlog backlog;
    uint64_t last_launch_at; /* of an admitted launch */
    bool is_waiting;         /* atomic; the host has waited for the card since its last launch */
    bool is_bound;           /* the program was host-bound when it last waited for the card, or began to queue */
    bool has_left_gap;       /* at the end of the last turn the card had been idle, waiting for launches */
};

struct gate {               /* NOLINT(clang-analyzer-optin.performance.Padding): in the order of their meaning */
    struct mutex mutex;     /* LOCK_GATE; guards every field that is not atomic. Never held across a call of the
                               driver's or while a thread waits for a turn */
    uint32_t changes;       /* atomic; futex word, counts what gate_note_change announces */
    unsigned waiters;       /* threads that wait for a change */
    enum gate_phase phase;  /* written by gate_drive.c alone */
    bool is_queue_turn;     /* the last turn that was opened, in OPEN_QUEUE or in OPEN; written with the phase */
    unsigned in_driver;     /* launches between launch_gate_enter and launch_gate_leave, and queries of the probe; they
                               use entries of `events` without the mutex */
    unsigned index;         /* CUDA device ordinal of the gate */
    uint64_t next_check_at; /* atomic; clock_ticks() at which `has_share` is to be refreshed, 0 = at once */
    bool has_share;         /* atomic; the container has a fixed share of the card, as of the last refresh */
    struct turn_request request;
    struct turn turn;
    struct turn_events events[2]; /* of the turn, and of the turn that was set aside (gate_events) */
    unsigned open_events;         /* index of the turn's events */
    struct set_aside_turn set_aside;
    struct turn_sample turn_sample;
    struct joint_pass joint_pass;
    struct estimates estimates;
    uint64_t assumed_ns;  /* what a launch without an estimate is assumed to take, after those that were measured */
    bool was_interrupted; /* the last measured turn; see turn_is_interrupted */
    uint64_t works_until; /* atomic; until when the process counts as having work on the card, unless it is seen to
                             drain; CLOCK_MONOTONIC in ns, 0 = it has none */
    struct gate_host host;
    struct gate_queue queue;
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

/* Whether launches of this process have needed a turn, and it has used several cards. */
bool gate_are_several(void);

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

/* Whether this process may have work on a card of another gate than `index`. Takes no lock. */
bool gate_is_work_elsewhere(unsigned index);

/* Whether it may have work on the card of the gate `index`. Takes no lock. */
bool gate_is_work_on(unsigned index);

/* Likewise, work that should have ended. */
bool gate_is_late(unsigned index);

/* How long a card counts as having work of the process after the work should have drained. */
#define GATE_WORK_TIMEOUT (1000 * NS_PER_MS)

/* Wakes every thread that waits for a change. The caller holds LOCK_GATE. */
void gate_note_change(struct gate *gate);

#endif
