#include "compute/gate/gate_machine.h"

#include "common/arithmetic.h"

/* Longest wait of a launch for a thread that opens or closes the turn. How soon a launch looks again whether the card
 * has made room in the queue's turn. */
#define TRANSITION_POLL (10 * NS_PER_MS)
#define QUEUE_POLL      (200 * NS_PER_US)

/* Longest time between two looks of the gate's thread, and of a thread that flushes the queue. */
#define LOOK_INTERVAL (1000 * NS_PER_MS)
#define FLUSH_POLL    (10 * NS_PER_MS)

bool gate_is_queuing(enum gate_phase phase) {
    return phase == GATE_QUEUING || phase == GATE_QUEUING_WANTED || phase == GATE_QUEUING_ASKED;
}

bool gate_is_open(enum gate_phase phase) { return phase == GATE_OPEN || phase == GATE_OPEN_QUEUE; }

bool gate_is_closing(enum gate_phase phase) { return phase == GATE_CLOSING || phase == GATE_CLOSING_ASKED; }

bool gate_awaits_launches(enum gate_phase phase) { return phase == GATE_OPENING || gate_is_closing(phase); }

enum gate_admission gate_admission(enum gate_phase phase) {
    if (gate_awaits_launches(phase)) return GATE_ADMITS_NONE;
    if (phase == GATE_OPEN) return GATE_ADMITS_TO_TURN;
    return phase == GATE_OPEN_QUEUE || gate_is_queuing(phase) ? GATE_ADMITS_TO_QUEUE : GATE_ADMITS_OPENING;
}

static struct gate_step to(enum gate_phase phase, enum gate_action action) {
    return (struct gate_step){.phase = phase, .action = action};
}

static struct gate_step stay(const struct gate_view *view, enum gate_action action) { return to(view->phase, action); }

static struct gate_step await_change(enum gate_phase phase, uint64_t most) {
    return (struct gate_step){.phase = phase, .action = GATE_AWAIT_CHANGE, .wait_ns = most};
}

static struct gate_step await_for(const struct gate_view *view, enum gate_action action, uint64_t ns) {
    return (struct gate_step){.phase = view->phase, .action = action, .wait_ns = ns};
}

static struct gate_step await_due(const struct gate_view *view, enum gate_action action) {
    if (view->due_at == UINT64_MAX) return await_change(view->phase, LOOK_INTERVAL);
    return await_for(view, action, view->due_at - min_u64(view->now, view->due_at));
}

static struct gate_step launch_held_back(const struct gate_view *view) {
    switch (view->phase) {
        case GATE_SHUT:
        case GATE_DRAINING:
            return to(GATE_OPENING, GATE_OPEN_TURN);
        case GATE_OPEN:
            return view->verdict == VERDICT_TOO_DEEP ? stay(view, GATE_AWAIT_ROOM) : to(GATE_CLOSING, GATE_CLOSE_TURN);
        case GATE_OPEN_QUEUE:
            return view->verdict == VERDICT_UNMEASURED ? to(GATE_CLOSING, GATE_CLOSE_QUEUE_TURN)
                                                       : await_for(view, GATE_AWAIT_TIME, QUEUE_POLL);
        case GATE_QUEUING:
            return await_change(GATE_QUEUING_WANTED, TRANSITION_POLL);
        default:
            return await_change(view->phase, TRANSITION_POLL);
    }
}

/* A launch that stays in the driver may be waiting for another launch of this process, so the turn goes on, and admits
 * every launch for a while. Work that does not drain may, too: then the turn admits launches as far as there is a loan
 * for them. */
static struct gate_step launches_stay(const struct gate_view *view) {
    return view->phase == GATE_CLOSING ? to(GATE_OPEN, GATE_DO_NOTHING) : stay(view, GATE_DO_NOTHING);
}

static struct gate_step turn_taken(const struct gate_view *view) {
    return view->phase == GATE_OPENING ? to(GATE_OPEN, GATE_DO_NOTHING) : stay(view, GATE_DO_NOTHING);
}

static struct gate_step collects(const struct gate_view *view) {
    return view->phase == GATE_OPENING ? to(GATE_CLOSING, GATE_DO_NOTHING) : stay(view, GATE_DO_NOTHING);
}

static struct gate_step queue_refused(const struct gate_view *view) {
    return view->phase == GATE_OPENING ? to(GATE_SHUT, GATE_DO_NOTHING) : stay(view, GATE_DO_NOTHING);
}

static bool is_owned(enum gate_phase phase) { return phase == GATE_OPENING || phase == GATE_CLOSING; }

static struct gate_step queue_begun(const struct gate_view *view) {
    return is_owned(view->phase) ? to(GATE_QUEUING, GATE_DO_NOTHING) : stay(view, GATE_DO_NOTHING);
}

static struct gate_step queue_turn_taken(const struct gate_view *view) {
    return is_owned(view->phase) ? to(GATE_OPEN_QUEUE, GATE_DO_NOTHING) : stay(view, GATE_DO_NOTHING);
}

/* What is still closed is queued for the next turn, which is asked for at once. */
static struct gate_step turn_ended(const struct gate_view *view) {
    if (view->phase != GATE_CLOSING) return stay(view, GATE_DO_NOTHING);
    if (view->is_any_closed) return to(GATE_QUEUING_WANTED, GATE_DO_NOTHING);
    return to(view->has_ends ? GATE_DRAINING : GATE_SHUT, GATE_DO_NOTHING);
}

static struct gate_step thread_looks(const struct gate_view *view) {
    switch (view->phase) {
        case GATE_OPEN_QUEUE:
            return stay(view, GATE_SERVE_TURN);
        case GATE_QUEUING_WANTED:
            return to(GATE_QUEUING_ASKED, GATE_ASK_TURN);
        case GATE_QUEUING:
            return view->now >= view->due_at ? to(GATE_QUEUING_ASKED, GATE_ASK_TURN) : await_due(view, GATE_AWAIT_TIME);
        default:
            return await_change(view->phase, LOOK_INTERVAL);
    }
}

/* Where the launches were released meanwhile, the turn is left to the next launch. */
static struct gate_step turn_arrived(const struct gate_view *view) {
    switch (view->phase) {
        case GATE_QUEUING_ASKED:
            return to(GATE_OPEN_QUEUE, GATE_BEGIN_TURN);
        case GATE_SHUT_ASKED:
            return to(GATE_SHUT, GATE_DO_NOTHING);
        case GATE_CLOSING_ASKED:
            return to(GATE_CLOSING, GATE_DO_NOTHING);
        default:
            return stay(view, GATE_DO_NOTHING);
    }
}

static struct gate_step paced(const struct gate_view *view) {
    if (view->phase != GATE_OPEN_QUEUE) return stay(view, GATE_DO_NOTHING);
    if (view->verdict == VERDICT_FULL) return to(GATE_CLOSING, GATE_END_TURN);
    if (view->is_idle && view->now >= view->due_at) return to(GATE_CLOSING, GATE_GIVE_BACK);
    return await_due(view, view->verdict == VERDICT_TOO_DEEP ? GATE_AWAIT_PACE : GATE_AWAIT_TIME);
}

/* The gate's thread is woken, because a turn that the host waits for is asked for at once. */
static struct gate_step host_waits(const struct gate_view *view) {
    if (gate_is_queuing(view->phase)) return (struct gate_step){.phase = view->phase, .wakes = true};
    if (view->phase == GATE_OPEN_QUEUE && view->is_idle) return to(GATE_CLOSING, GATE_GIVE_BACK);
    return stay(view, gate_is_open(view->phase) ? GATE_NOTE_AWAITED : GATE_DO_NOTHING);
}

static struct gate_step host_waited(const struct gate_view *view) {
    if (view->phase == GATE_DRAINING) return to(GATE_CLOSING, GATE_CORRECT_DRAIN);
    return stay(view, gate_is_open(view->phase) ? GATE_NOTE_BUSY : GATE_DO_NOTHING);
}

static struct gate_step await_flush(const struct gate_view *view) {
    return await_change(view->phase == GATE_QUEUING ? GATE_QUEUING_WANTED : view->phase, FLUSH_POLL);
}

static struct gate_step flush(const struct gate_view *view) {
    if (view->is_any_closed && view->now < view->due_at) return await_flush(view);
    switch (view->phase) {
        case GATE_OPEN:
        case GATE_OPEN_QUEUE:
            return stay(view, GATE_OPEN_SEGMENTS);
        case GATE_QUEUING:
        case GATE_QUEUING_WANTED:
            return to(GATE_SHUT, GATE_OPEN_SEGMENTS);
        case GATE_QUEUING_ASKED:
            return to(GATE_SHUT_ASKED, GATE_RELEASE_SEGMENTS);
        default:
            return stay(view, GATE_RELEASE_SEGMENTS);
    }
}

/* The events are used without the lock, so the phase is CLOSING meanwhile. */
static struct gate_step stream_ends(const struct gate_view *view) {
    bool is_recorded = gate_is_open(view->phase) && view->has_unrecorded_end;
    return is_recorded ? to(GATE_CLOSING, GATE_RECORD_ENDS) : stay(view, GATE_DO_NOTHING);
}

static struct gate_step work_asked(const struct gate_view *view) {
    return view->phase == GATE_OPEN ? to(GATE_CLOSING, GATE_LOOK_AT_STREAMS) : stay(view, GATE_DO_NOTHING);
}

static struct gate_step turn_goes_on(const struct gate_view *view) {
    if (view->phase != GATE_CLOSING) return stay(view, GATE_DO_NOTHING);
    return to(view->is_queue_turn ? GATE_OPEN_QUEUE : GATE_OPEN, GATE_DO_NOTHING);
}

/* A thread that opens a turn goes on, without its events. A thread that has been closing for too long is left alone. */
static struct gate_step context_ends(const struct gate_view *view) {
    switch (view->phase) {
        case GATE_CLOSING:
        case GATE_CLOSING_ASKED:
            return stay(view, GATE_DO_NOTHING);
        case GATE_OPENING:
            return stay(view, GATE_DROP_EVENTS);
        case GATE_OPEN:
        case GATE_OPEN_QUEUE:
            return to(GATE_CLOSING, GATE_DROP_TURN);
        case GATE_SHUT_ASKED:
        case GATE_QUEUING_ASKED:
            return to(GATE_CLOSING_ASKED, GATE_DROP_GATE);
        default:
            return to(GATE_CLOSING, GATE_DROP_GATE);
    }
}

static struct gate_step context_ended(const struct gate_view *view) {
    switch (view->phase) {
        case GATE_CLOSING:
            return to(GATE_SHUT, GATE_DO_NOTHING);
        case GATE_CLOSING_ASKED:
            return to(GATE_SHUT_ASKED, GATE_DO_NOTHING);
        default:
            return stay(view, GATE_DO_NOTHING);
    }
}

static struct gate_step (*const rules[GATE_EVENTS])(const struct gate_view *) = {
    [GATE_LAUNCH_HELD_BACK] = launch_held_back,
    [GATE_LAUNCHES_STAY] = launches_stay,
    [GATE_WORK_STAYS] = launches_stay,
    [GATE_TURN_TAKEN] = turn_taken,
    [GATE_COLLECTS] = collects,
    [GATE_QUEUE_REFUSED] = queue_refused,
    [GATE_QUEUE_BEGUN] = queue_begun,
    [GATE_QUEUE_TURN_TAKEN] = queue_turn_taken,
    [GATE_TURN_ENDED] = turn_ended,
    [GATE_THREAD_LOOKS] = thread_looks,
    [GATE_TURN_ARRIVED] = turn_arrived,
    [GATE_PACED] = paced,
    [GATE_HOST_WAITS] = host_waits,
    [GATE_HOST_WAITED] = host_waited,
    [GATE_FLUSH] = flush,
    [GATE_STREAM_ENDS] = stream_ends,
    [GATE_WORK_ASKED] = work_asked,
    [GATE_TURN_GOES_ON] = turn_goes_on,
    [GATE_CONTEXT_ENDS] = context_ends,
    [GATE_CONTEXT_ENDED] = context_ended,
};

/* A thread that waits for a change finds nothing new in a phase in which another thread is at work. */
static bool is_at_work(enum gate_phase phase) { return gate_awaits_launches(phase) || phase == GATE_QUEUING_ASKED; }

struct gate_step gate_step(const struct gate_view *view, enum gate_event event) {
    struct gate_step step = rules[event](view);
    step.wakes |= step.phase != view->phase && !is_at_work(step.phase);
    return step;
}
