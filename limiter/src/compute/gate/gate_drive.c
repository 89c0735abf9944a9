#include "compute/gate/gate_drive.h"

#include <sys/prctl.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/gate/gate_admission.h"
#include "compute/gate/gate_machine.h"
#include "compute/gate/gate_measure.h"
#include "compute/gate/gate_queue.h"
#include "compute/gate/gate_turns.h"
#include "compute/gate/queue_pace.h"
#include "compute/link/arbiter_link.h"
#include "compute/link/card_turn.h"
#include "compute/link/linked_window.h"
#include "compute/queue/queue_page.h"
#include "process/lock.h"
#include "process/quiet_thread.h"
#include "region/activity.h"

/* How long a thread waits for one that closes the turn, and how often it looks; for launches in the driver; for the
 * turn of what is to be flushed. A launch may stay in the driver until the program makes another one, so all have a
 * bound. */
#define CLOSED_TIMEOUT   (1000 * NS_PER_MS)
#define CLOSED_POLL      (10 * NS_PER_MS)
#define LAUNCHES_TIMEOUT (100 * NS_PER_MS)
#define LAUNCHES_POLL    (1 * NS_PER_MS)
#define FLUSH_TIMEOUT    (1000 * NS_PER_MS)

/* A shorter time without work is not worth the question to the driver, which takes some us. */
#define PAUSE_MIN (NS_PER_MS / 10)

enum { THREAD_STACK = 256 * 1024 };

/* Takes LOCK_GATE of the gate and holds it to the end of the enclosing block, by whichever way that is left. */
#define HOLD_GATE(pointer) __attribute__((cleanup(drop), unused)) struct gate *const held_gate = hold(pointer)

static struct gate *hold(struct gate *gate) {
    lock_note_taken(LOCK_GATE);
    mutex_lock(&gate->mutex);
    return gate;
}

static void drop(struct gate *const *held) {
    mutex_unlock(&(*held)->mutex);
    lock_note_released(LOCK_GATE);
}

/* The opposite, for a thread that holds LOCK_GATE: releases it, and takes it again at the end of the enclosing block.
 */
#define RELEASE_GATE(pointer) __attribute__((cleanup(retake), unused)) struct gate *const free_gate = let_go(pointer)

static struct gate *let_go(struct gate *gate) {
    drop(&gate);
    return gate;
}

static void retake(struct gate *const *released) { hold(*released); }

/* From here on, the caller of a static function holds LOCK_GATE. It is released where RELEASE_GATE says so: while a
 * thread waits, and in the steps that a thread does as the gate's owner. */

/* A futex of its own: pthread_cond_timedwait() is a cancellation point, and waits by the wall clock, which may be set
 * back, unless the condition variable is initialised for another clock. */
static void await_change(struct gate *gate, uint64_t ns) {
    uint32_t seen = gate->changes;
    gate->waiters++;
    {
        RELEASE_GATE(gate);
        system_futex_wait(&gate->changes, seen, ns, FUTEX_PRIVATE_FLAG);
    }
    gate->waiters--;
}

/* The default timer slack of a thread is 50 us: half of the 100 us that may be in flight beside a
 * latency-sensitive tenant. */
static void await_change_precisely(struct gate *gate, uint64_t ns) {
    int slack = system_prctl(PR_GET_TIMERSLACK, 0);
    if (slack > 1) system_prctl(PR_SET_TIMERSLACK, 1);
    await_change(gate, ns);
    if (slack > 1) system_prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

/* Whether no launch is in the driver. The phase is OPENING or CLOSING; if another thread owns the gate and leads it to
 * a phase that admits launches, the wait is over. */
static bool await_launches(struct gate *gate) {
    uint64_t until = clock_now() + LAUNCHES_TIMEOUT;
    while (gate->in_driver && gate_awaits_launches(gate->phase) && clock_now() < until)
        await_change(gate, LAUNCHES_POLL);
    return gate->in_driver == 0;
}

/* Whether no thread is closing the turn. */
static bool await_closed(struct gate *gate) {
    uint64_t until = clock_now() + CLOSED_TIMEOUT;
    while (gate_is_closing(gate->phase) && clock_now() < until) await_change(gate, CLOSED_POLL);
    return !gate_is_closing(gate->phase);
}

static void note_left_driver(struct gate *gate) {
    gate->in_driver--;
    if (gate->in_driver == 0 && gate_awaits_launches(gate->phase)) gate_note_change(gate);
}

/* One step of the machine; `view` is completed by what every step needs. */
static struct gate_step advance_at(struct gate *gate, enum gate_event event, struct gate_view view, uint64_t now) {
    view.phase = gate->phase;
    view.now = now;
    struct gate_step step = gate_step(&view, event);
    gate->phase = step.phase;
    if (gate_is_open(step.phase)) gate->is_queue_turn = step.phase == GATE_OPEN_QUEUE;
    if (step.wakes) gate_note_change(gate);
    return step;
}

static struct gate_step advance(struct gate *gate, enum gate_event event, struct gate_view view) {
    return advance_at(gate, event, view, clock_now());
}

/* A step after which there is nothing to do. */
static void conclude(struct gate *gate, enum gate_event event) { advance(gate, event, (struct gate_view){0}); }

static void conclude_turn(struct gate *gate, bool has_ends) {
    bool is_any_closed = segments_any_closed(&gate->queue.segments);
    gate->queue.since = clock_now();
    advance(gate, GATE_TURN_ENDED, (struct gate_view){.has_ends = has_ends, .is_any_closed = is_any_closed});
}

static struct turn_limits await_turn(struct gate *gate) {
    RELEASE_GATE(gate);
    return turn_request_take(&gate->request, NULL);
}

/* The ends are recorded as soon as there is no work: at the next launch, which may come after a pause that repays the
 * debts of all linked cards, the pause would lie between the turn's first launch and them. */
static bool has_idle_streams(struct gate *gate) {
    RELEASE_GATE(gate);
    bool are_idle = turn_events_unrecorded_are_idle(gate_events(gate)) && turn_events_are_done(gate_events(gate));
    if (are_idle) turn_events_record_ends(gate_events(gate), NULL);
    return are_idle;
}

static void note_drained(struct gate *gate) {
    __atomic_store_n(&gate->works_until, 0, __ATOMIC_RELAXED);
    turn_note_drained(&gate->turn, clock_now());
}

static void look_at_streams(struct gate *gate) {
    if (advance(gate, GATE_WORK_ASKED, (struct gate_view){0}).action != GATE_LOOK_AT_STREAMS) return;
    if (gate->in_driver == 0 && has_idle_streams(gate)) note_drained(gate);
    advance(gate, GATE_TURN_GOES_ON, (struct gate_view){.is_queue_turn = gate->is_queue_turn});
}

/* A turn that another thread opens or closes may have work. */
static bool is_at_work(struct gate *gate) {
    HOLD_GATE(gate);
    look_at_streams(gate);
    return gate_is_work_on(gate->index);
}

/* The program makes the card work again, by a copy, or waits for it. Whether it was idle since its work was expected to
 * drain, or a kernel has taken longer than expected, is not known later. */
static void look_for_pause(struct gate *gate, uint64_t now) {
    const struct turn *turn = &gate->turn;
    bool is_charged_as_measured = !turn->limits.is_joint && !early_launches_are_any(&turn->early);
    if (is_charged_as_measured && now > turn->drains_at + PAUSE_MIN) look_at_streams(gate);
}

/* The driver is asked, because no other thread may be waiting for that work. */
static bool is_at_work_elsewhere(unsigned index, bool is_late) {
    bool is_any = false;
    for (unsigned i = 0; i < GATES; i++)
        if (i != index && (is_late ? gate_is_late(i) : gate_is_work_on(i))) is_any |= is_at_work(gate_at((int)i));
    return is_any;
}

/* A launch that needs `need` may go early; `loan` says on how much. */
static struct turn_limits await_turn_or_loan(struct gate *gate, uint64_t need, uint64_t *loan) {
    struct early_request early = {.need = need,
                                  .gate = gate->index,
                                  .is_work_elsewhere = gate_is_work_elsewhere,
                                  .is_at_work_elsewhere = is_at_work_elsewhere};
    RELEASE_GATE(gate);
    struct turn_limits limits = turn_request_take(&gate->request, &early);
    *loan = early.loan;
    return limits;
}

/* The turn of queued launches. */
static void end_queue_turn(struct gate *gate, bool may_ask_driver, bool is_given_back) {
    bool has_ends;
    {
        RELEASE_GATE(gate);
        has_ends = gate_queue_end_turn(gate, may_ask_driver, is_given_back);
    }
    conclude_turn(gate, has_ends);
}

static void end_turn(struct gate *gate, enum verdict verdict, uint64_t need) {
    bool is_over;
    {
        RELEASE_GATE(gate);
        is_over = gate_turns_end(gate, verdict, need);
    }
    if (is_over)
        conclude_turn(gate, false);
    else
        conclude(gate, GATE_WORK_STAYS);
}

/* Launches may stay in the driver: the events of one that is timed alone are not touched before it has left. */
static void charge_joint_turn(struct gate *gate) {
    bool is_sample_over = !gate->turn_sample.is_in_driver;
    {
        RELEASE_GATE(gate);
        gate_turns_charge_joint(gate, is_sample_over);
    }
    if (is_sample_over) gate_turns_draw_sample(gate);
    conclude(gate, GATE_TURN_GOES_ON);
}

static void close_turn(struct gate *gate, enum gate_action action, enum verdict verdict, uint64_t need) {
    if (gate_turns_is_joint_to_go_on(gate, verdict)) {
        charge_joint_turn(gate);
    } else if (!await_launches(gate)) {
        turn_extend(&gate->turn, clock_now());
        conclude(gate, GATE_LAUNCHES_STAY);
    } else if (action == GATE_CLOSE_QUEUE_TURN) {
        end_queue_turn(gate, true, card_turn_is_asked_to_yield(&gate->request));
    } else {
        end_turn(gate, verdict, need);
    }
}

/* The gate's thread, while it serves a turn. Until the next segment may be opened, only the arbiter has something to
 * say. */
static void await_pace(struct gate *gate, uint64_t ns) {
    uint32_t turn = gate->request.arbiter_turn.number;
    if (!turn) {
        await_change(gate, ns);
        return;
    }
    RELEASE_GATE(gate);
    arbiter_link_await_yield(&gate->request.link, turn, ns);
}

static void serve_turn(struct gate *gate, uint64_t now) {
    enum verdict verdict = queue_pace_step(gate, now);
    struct gate_view view = {
        .verdict = verdict, .is_idle = gate_queue_is_idle(gate), .due_at = gate_queue_look_at(gate, verdict, now)};
    struct gate_step step = advance_at(gate, GATE_PACED, view, now);
    switch (step.action) {
        case GATE_END_TURN:
            end_queue_turn(gate, false, gate_queue_is_turn_over(gate));
            break;
        case GATE_GIVE_BACK:
            end_queue_turn(gate, false, true);
            break;
        case GATE_AWAIT_PACE:
            await_pace(gate, step.wait_ns);
            break;
        default:
            await_change(gate, step.wait_ns);
    }
}

/* While the gate's thread waits for the turn, launches are queued. */
static void take_queue_turn(struct gate *gate) {
    struct turn_limits limits = await_turn(gate);
    struct gate_step step = advance(gate, GATE_TURN_ARRIVED, (struct gate_view){0});
    if (step.action == GATE_BEGIN_TURN) gate_queue_begin_turn(gate, limits);
}

static void serve_once(struct gate *gate) {
    uint64_t now = clock_now();
    struct gate_view view = {.due_at = gate_queue_ask_at(gate)};
    struct gate_step step = advance_at(gate, GATE_THREAD_LOOKS, view, now);
    switch (step.action) {
        case GATE_SERVE_TURN:
            serve_turn(gate, now);
            break;
        case GATE_ASK_TURN:
            take_queue_turn(gate);
            break;
        default:
            await_change(gate, step.wait_ns);
    }
}

static void *serve(void *argument) {
    struct gate *gate = argument;
    system_prctl(PR_SET_NAME, (unsigned long)"vgpu-queue");
    system_prctl(PR_SET_TIMERSLACK, 1);
    HOLD_GATE(gate);
    gate->queue.thread = THREAD_RUNS;
    for (;;) serve_once(gate);
    return NULL;
}

/* Whether the gate's thread runs. Until it has begun, no launch is queued: what is behind a closed wait needs it. */
static bool ensure_thread(struct gate *gate) {
    if (gate->queue.thread != THREAD_NONE) return gate->queue.thread == THREAD_RUNS;
    gate->queue.thread = THREAD_STARTED;
    RELEASE_GATE(gate);
    if (!quiet_thread_start(THREAD_STACK, serve, gate)) queue_page_refuse();
    return false;
}

/* The turn that was set aside uses the driver, so it is measured before anything is queued. */
static void collect(struct gate *gate) {
    if (!gate->set_aside.is_valid || gate->in_driver) return;
    conclude(gate, GATE_COLLECTS);
    RELEASE_GATE(gate);
    gate_measure_collect(gate);
}

static void begin_queue(struct gate *gate) {
    if (!ensure_thread(gate)) {
        conclude(gate, GATE_QUEUE_REFUSED);
        return;
    }
    collect(gate);
    gate_queue_begin(gate);
    bool is_at_hand = card_turn_is_at_hand(&gate->request);
    if (is_at_hand) queue_pace_begin(gate, await_turn(gate));
    conclude(gate, is_at_hand ? GATE_QUEUE_TURN_TAKEN : GATE_QUEUE_BEGUN);
}

/* Launches of a turn that was queued may still be in the driver, with entries of the events that would be reset. One
 * that stays there may be waiting for the launches of this turn, which is then not measured. */
static void prepare_events(struct gate *gate) {
    gate_turns_draw_sample(gate);
    if (await_launches(gate))
        turn_events_reset(gate_events(gate));
    else
        turn_events_note_mixed(gate_events(gate));
}

static bool is_to_be_queued(struct gate *gate) {
    RELEASE_GATE(gate);
    return gate_queue_is_worth_it(gate);
}

static void open_turn(struct gate *gate, bool is_queueable, uint64_t need) {
    prepare_events(gate);
    if (is_queueable && is_to_be_queued(gate)) {
        begin_queue(gate);
        return;
    }
    uint64_t loan;
    gate_turns_begin(gate, await_turn_or_loan(gate, need, &loan));
    if (loan) turn_lend(&gate->turn, loan, clock_now());
    conclude(gate, GATE_TURN_TAKEN);
}

static bool ask_probe(struct gate *gate, CUevent probe) {
    RELEASE_GATE(gate);
    return turn_events_is_probe_passed(probe);
}

/* Whether the card has passed the probe of the turn. The query counts as a launch in the driver, so that no other
 * thread ends the turn and destroys the event. */
static bool learn_from_probe(struct gate *gate) {
    CUevent probe = turn_events_probe(gate_events(gate));
    if (!probe) return false;
    gate->in_driver++;
    bool is_passed = ask_probe(gate, probe);
    note_left_driver(gate);
    gate_turns_apply_probe(gate, probe, is_passed);
    return is_passed;
}

static void await_room(struct gate *gate) {
    if (learn_from_probe(gate) || gate->phase != GATE_OPEN) return;
    struct region_activity *activity = gate->request.activity; /* another thread may open a turn during the wait */
    uint64_t since = clock_now();
    await_change_precisely(gate, gate_turns_room_in(gate));
    activity_count_wait(activity, REGION_WAIT_DRAIN, clock_now() - since);
}

/* The GPU time that a launch needs, in ns. Only for the thread that opens or closes the turn, because that one writes
 * the turn without the gate's lock. */
static uint64_t needed(const struct gate *gate, const struct queued_launch *launch) {
    return early_launches_need(&gate->turn.early, launch->estimate != 0, launch->estimate);
}

/* One step towards a turn with room for a launch that got `verdict`. */
static void make_room(struct gate *gate, enum verdict verdict, const struct queued_launch *launch) {
    struct gate_step step = advance(gate, GATE_LAUNCH_HELD_BACK, (struct gate_view){.verdict = verdict});
    switch (step.action) {
        case GATE_OPEN_TURN:
            open_turn(gate, verdict != VERDICT_UNMEASURED, needed(gate, launch));
            break;
        case GATE_CLOSE_TURN:
        case GATE_CLOSE_QUEUE_TURN:
            close_turn(gate, step.action, verdict, needed(gate, launch));
            break;
        case GATE_AWAIT_ROOM:
            await_room(gate);
            break;
        default:
            await_change(gate, step.wait_ns);
    }
}

static void wait_for_admission(struct gate *gate, struct queued_launch *launch, struct launch_slot *slot,
                               enum verdict verdict) {
    uint64_t since = clock_now();
    for (; verdict != VERDICT_FITS; verdict = gate_admission_try(gate, launch, slot)) {
        gate_admission_note_held_back(gate, verdict);
        make_room(gate, verdict, launch);
    }
    gate_admission_note_waited(gate, clock_now() - since);
}

void gate_drive_admit(struct gate *gate, struct queued_launch *launch, struct launch_slot *slot) {
    HOLD_GATE(gate);
    gate_admission_note_arrival(gate);
    enum verdict verdict = gate_admission_try(gate, launch, slot);
    if (verdict != VERDICT_FITS) wait_for_admission(gate, launch, slot, verdict);
}

void gate_drive_note_left_driver(struct gate *gate, bool is_sampled) {
    HOLD_GATE(gate);
    if (is_sampled) gate->turn_sample.is_in_driver = false;
    note_left_driver(gate);
}

void gate_drive_read_sample(struct gate *gate) {
    uint64_t measured;
    bool is_over = queue_sample_read(&gate->queue.sample, &measured);
    HOLD_GATE(gate);
    if (is_over)
        queue_sample_learn(&gate->queue.sample, &gate->estimates, measured);
    else
        queue_sample_note_unfinished(&gate->queue.sample);
}

void gate_drive_note_copy(struct gate *gate) {
    HOLD_GATE(gate);
    look_for_pause(gate, clock_now());
}

bool gate_drive_begin_wait(struct gate *gate, uint64_t since) {
    HOLD_GATE(gate);
    look_for_pause(gate, since);
    bool ends_period = gate_queue_note_host_waits(gate, since);
    struct gate_view view = {.is_idle = gate_queue_is_idle(gate)};
    struct gate_step step = advance(gate, GATE_HOST_WAITS, view);
    if (step.action == GATE_GIVE_BACK) end_queue_turn(gate, true, true);
    if (step.action == GATE_NOTE_AWAITED) queue_pace_note_awaited(gate);
    linked_window_note_wait(&gate->request, true);
    return ends_period;
}

static void correct_drain(struct gate *gate) {
    {
        RELEASE_GATE(gate);
        gate_queue_correct_drain(gate);
    }
    conclude_turn(gate, false);
}

static void end_early_launches(struct gate *gate) {
    if (!early_launches_may_be_awaited(&gate->turn.early) || gate->in_driver) return;
    if (advance(gate, GATE_WORK_ASKED, (struct gate_view){0}).action != GATE_LOOK_AT_STREAMS) return;
    {
        RELEASE_GATE(gate);
        gate_measure_end_early_launches(gate);
    }
    advance(gate, GATE_TURN_GOES_ON, (struct gate_view){.is_queue_turn = gate->is_queue_turn});
}

void gate_drive_end_wait(struct gate *gate, uint64_t since, bool ends_period) {
    HOLD_GATE(gate);
    uint64_t now = clock_now();
    linked_window_note_wait(&gate->request, false);
    gate_queue_note_host_waited(gate, now - since, ends_period);
    struct gate_step step = advance_at(gate, GATE_HOST_WAITED, (struct gate_view){0}, now);
    if (step.action == GATE_NOTE_BUSY) {
        gate_queue_note_busy(gate, now - since, now);
        end_early_launches(gate);
    }
    if (step.action == GATE_CORRECT_DRAIN) correct_drain(gate);
}

static void flush(struct gate *gate) {
    struct gate_view view = {.due_at = clock_now() + FLUSH_TIMEOUT};
    struct gate_step step;
    for (;;) {
        view.is_any_closed = segments_any_closed(&gate->queue.segments);
        step = advance(gate, GATE_FLUSH, view);
        if (step.action != GATE_AWAIT_CHANGE) break;
        await_change(gate, step.wait_ns);
    }
    if (step.action == GATE_OPEN_SEGMENTS)
        queue_pace_open_all(gate);
    else
        queue_pace_release_all(gate);
}

static uint64_t flush_queued(struct gate *gate) {
    HOLD_GATE(gate);
    if (!segments_any_closed(&gate->queue.segments)) return 0;
    flush(gate);
    return await_closed(gate) ? gate_queue_time_to_drain(gate) : GATE_QUEUE_DRAIN_MAX;
}

void gate_drive_drain(struct gate *gate) {
    uint64_t wait = flush_queued(gate);
    if (wait) system_sleep(wait);
}

static void record_ends(struct gate *gate, CUstream stream) {
    RELEASE_GATE(gate);
    turn_events_record_ends(gate_events(gate), stream);
}

void gate_drive_end_stream(struct gate *gate, CUstream stream) {
    HOLD_GATE(gate);
    if (!await_closed(gate)) return;
    if (gate_is_queuing(gate->phase) || gate->is_queue_turn) turn_events_drop_end(gate_events(gate), stream);
    struct gate_view view = {.has_unrecorded_end = turn_events_has_unrecorded_end(gate_events(gate), stream)};
    struct gate_step step = advance(gate, GATE_STREAM_ENDS, view);
    if (step.action != GATE_RECORD_ENDS) return;
    record_ends(gate, stream);
    advance(gate, GATE_TURN_GOES_ON, (struct gate_view){.is_queue_turn = gate->is_queue_turn});
}

/* Keeps launches out, and waits until none is in the driver; GATE_DO_NOTHING: another thread is closing for too long. A
 * thread that opens a turn may have gone on meanwhile: then the gate is asked again. */
static enum gate_action stop_launches(struct gate *gate) {
    enum gate_action action;
    do {
        await_closed(gate);
        action = advance(gate, GATE_CONTEXT_ENDS, (struct gate_view){0}).action;
        if (action != GATE_DO_NOTHING) await_launches(gate);
    } while (action == GATE_DROP_EVENTS && gate->phase != GATE_OPENING);
    queue_pace_release_all(gate);
    return action;
}

static void drop_events(struct gate *gate) {
    struct turn_events *events = gate_measure_detach_events(gate);
    RELEASE_GATE(gate);
    gate_measure_destroy_events(events);
}

static void charge_estimates(struct gate *gate) {
    RELEASE_GATE(gate);
    gate_measure_charge_estimates(gate);
}

void gate_drive_end_contexts(struct gate *gate) {
    HOLD_GATE(gate);
    flush(gate);
    enum gate_action action = stop_launches(gate);
    if (action == GATE_DO_NOTHING) return;
    if (action != GATE_DROP_EVENTS) gate_measure_drop(gate);
    if (action == GATE_DROP_TURN) charge_estimates(gate);
    drop_events(gate);
    if (action != GATE_DROP_EVENTS) conclude(gate, GATE_CONTEXT_ENDED);
}

void gate_drive_await_holder(struct gate *gate) { HOLD_GATE(gate); }
