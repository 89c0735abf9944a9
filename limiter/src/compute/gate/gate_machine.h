/* The launch gate of one card as a state machine: what a thread does next, from the phase of the gate, what happened,
 * and the time. Pure: no lock, no clock, no driver. gate_drive.c asks it under LOCK_GATE, and does what it answers.
 *
 * A phase says everything that is exclusive. In the phases OPENING and CLOSING one thread owns the gate: it works
 * without the lock, and it alone leads to the next phase, but for what is said at CONTEXT_ENDS.
 *
 * Every wait is one of two kinds. AWAIT_CHANGE has a waker: a step whose `wakes` is set, or an action of another
 * thread; its time is a safety net. The other waits end by their own time. */
#ifndef VGPU_COMPUTE_GATE_GATE_MACHINE_H
#define VGPU_COMPUTE_GATE_GATE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/turn/turn.h"

/* The gate's thread owns `request` in the phases whose names end with ASKED, also without the lock. */
enum gate_phase {
    GATE_SHUT,           /* no turn, and nothing is queued */
    GATE_SHUT_ASKED,     /* likewise; the gate's thread still waits for a turn, whose launches were released */
    GATE_DRAINING,       /* likewise; end events of the last turn, whose launches were queued, were recorded */
    GATE_OPENING,        /* a launching thread takes the next turn, and owns `request` */
    GATE_QUEUING,        /* no turn; launches go to the card behind a closed wait (gate_queue.h) */
    GATE_QUEUING_WANTED, /* likewise; the gate's thread is to ask for the turn at once */
    GATE_QUEUING_ASKED,  /* likewise; the gate's thread waits for the turn */
    GATE_OPEN,           /* launches are admitted to the turn */
    GATE_OPEN_QUEUE,     /* likewise; the turn's launches belong to segments (queue_pace.h) */
    GATE_CLOSING, /* a thread ends or measures a turn, and owns `request`, the turn, what is learned, and events */
    GATE_CLOSING_ASKED, /* likewise, but for `request`: contexts end while the gate's thread waits for a turn */
    GATE_PHASES
};

enum gate_event {
    /* A launching thread. */
    GATE_LAUNCH_HELD_BACK, /* its launch got `verdict`, which is not VERDICT_FITS */
    GATE_LAUNCHES_STAY,    /* launches stay in the driver, so the turn cannot be closed */
    GATE_WORK_STAYS,       /* the turn's work does not drain, and may be waiting for the launch */
    GATE_TURN_TAKEN,       /* the turn that was waited for has begun */
    GATE_COLLECTS,         /* the opening thread measures the turn that was set aside */
    GATE_QUEUE_REFUSED,    /* launches are not queued, because the gate's thread has not begun */
    GATE_QUEUE_BEGUN,      /* launches are queued from now on */
    GATE_QUEUE_TURN_TAKEN, /* likewise, and the turn was at hand */
    /* Whichever thread owns the gate. */
    GATE_TURN_ENDED, /* the turn was charged; see `has_ends` and `is_any_closed` */
    /* The gate's thread. */
    GATE_THREAD_LOOKS, /* it looks for work; in QUEUING it asks for the turn from `due_at` on */
    GATE_TURN_ARRIVED, /* the wait for the turn is over */
    GATE_PACED,        /* segments were opened up to `verdict`; the next look is due at `due_at` */
    /* A thread of the program. */
    GATE_HOST_WAITS,    /* it is about to wait for the card */
    GATE_HOST_WAITED,   /* that wait is over */
    GATE_FLUSH,         /* what is queued is to run; until `due_at` within a turn */
    GATE_STREAM_ENDS,   /* a stream is about to be destroyed */
    GATE_WORK_ASKED,    /* a thread that waits at a linked card's gate asks whether the turn's work goes on */
    GATE_TURN_GOES_ON,  /* the end of its launches was recorded, or its streams were looked at */
    GATE_CONTEXT_ENDS,  /* a context is about to be destroyed, and no other thread is closing, or has for too long */
    GATE_CONTEXT_ENDED, /* the gate has forgotten its turn and events */
    GATE_EVENTS
};

enum gate_action {
    GATE_DO_NOTHING,
    GATE_AWAIT_CHANGE,     /* for `wait_ns` at most */
    GATE_AWAIT_TIME,       /* for `wait_ns`, or until a change */
    GATE_AWAIT_PACE,       /* for `wait_ns`, or until the arbiter asks the turn back */
    GATE_AWAIT_ROOM,       /* until less work of the turn is in flight */
    GATE_OPEN_TURN,        /* take a turn, or begin to queue; ends with one of the launching thread's events */
    GATE_CLOSE_TURN,       /* GATE_LAUNCHES_STAY, GATE_WORK_STAYS or GATE_TURN_ENDED follows */
    GATE_CLOSE_QUEUE_TURN, /* GATE_LAUNCHES_STAY or GATE_TURN_ENDED follows */
    GATE_SERVE_TURN,       /* open segments; GATE_PACED follows */
    GATE_ASK_TURN,         /* wait for the turn without the lock; GATE_TURN_ARRIVED follows */
    GATE_BEGIN_TURN,       /* begin the turn that has arrived */
    GATE_END_TURN,         /* charge the queue's turn; GATE_TURN_ENDED follows */
    GATE_GIVE_BACK,        /* likewise, and give it back */
    GATE_NOTE_AWAITED,     /* the turn's work is waited for */
    GATE_NOTE_BUSY,        /* the card was busy with the turn until now */
    GATE_CORRECT_DRAIN,    /* the last turn's work has drained; GATE_TURN_ENDED follows */
    GATE_OPEN_SEGMENTS,    /* open all closed segments, and charge the turn */
    GATE_RELEASE_SEGMENTS, /* open them without charge: `request` or the turn is another thread's */
    GATE_RECORD_ENDS,      /* record the ends of the stream's launches; GATE_TURN_GOES_ON follows */
    GATE_LOOK_AT_STREAMS,  /* ask the driver whether they have work; GATE_TURN_GOES_ON follows */
    GATE_DROP_EVENTS,      /* take the events away, once no launch is in the driver, if the phase is still the same */
    GATE_DROP_GATE,        /* likewise, whatever the phase; GATE_CONTEXT_ENDED follows */
    GATE_DROP_TURN         /* likewise, and charge the turn by its estimates */
};

/* What a step depends on, besides the event. Each event uses the fields that it names. Times are CLOCK_MONOTONIC in ns.
 */
struct gate_view {
    enum gate_phase phase;
    uint64_t now;
    enum verdict verdict;
    bool is_any_closed;      /* a segment is closed */
    bool has_ends;           /* end events of the turn, which was given back, were recorded */
    bool has_unrecorded_end; /* the ends of the stream's launches are still to be recorded */
    bool is_idle;            /* the turn may be given back, because the host launches nothing */
    bool is_queue_turn;      /* the turn's launches belong to segments */
    uint64_t due_at;         /* UINT64_MAX = never */
};

struct gate_step {
    enum gate_phase phase;
    bool wakes; /* every thread that waits for a change looks again */
    enum gate_action action;
    uint64_t wait_ns;
};

/* What a launch may do in a phase. */
enum gate_admission {
    GATE_ADMITS_NONE,    /* another thread owns the estimates */
    GATE_ADMITS_OPENING, /* there is no turn: the launch has to open one */
    GATE_ADMITS_TO_TURN,
    GATE_ADMITS_TO_QUEUE
};

/* What happens next. An event that the phase does not know changes nothing. */
struct gate_step gate_step(const struct gate_view *view, enum gate_event event);

enum gate_admission gate_admission(enum gate_phase phase);

/* Whether launches go to the card ahead of their turn. */
bool gate_is_queuing(enum gate_phase phase);

/* Whether there is a turn that launches run in. */
bool gate_is_open(enum gate_phase phase);

/* Whether a thread owns the gate's turn and events. */
bool gate_is_closing(enum gate_phase phase);

/* Whether a thread may wait until no launch is in the driver. */
bool gate_awaits_launches(enum gate_phase phase);

#endif
