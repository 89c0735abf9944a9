#include "compute/gate/gate_queue.h"

#include <sys/prctl.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/gate/gate_measure.h"
#include "compute/gate/queue_pace.h"
#include "compute/queue/queue_page.h"
#include "container/container.h"
#include "process/quiet_thread.h"
#include "region/activity.h"

/* The host is taken to wait if it launches nothing for this long: longer than the gaps between the launches of an
 * interpreter, as short as a handover. */
#define SILENCE (200 * NS_PER_US)

/* The turn of a host-bound program is given back when the card has been idle for this long. */
#define IDLE_TIMEOUT (200 * NS_PER_US)

/* Longest time between two looks of the gate's thread at the gate, and of gate_queue_flush for a turn. */
#define LOOK_INTERVAL (1000 * NS_PER_MS)

/* How much longer than estimated work may take whose drain is waited for, and the longest wait for it. */
#define DRAIN_SLACK (500 * NS_PER_US)
#define DRAIN_MAX   (100 * NS_PER_MS)

/* A wait this short means that the work was done before the wait began. The card may have been idle for long by then,
 * so such a wait does not show that the card was busy. */
#define WAIT_MIN (20 * NS_PER_US)

/* Launches are queued while their average GPU time is at most this. A longer launch would nearly be a segment of its
 * own, with a wait and a write for each kernel; and a host that launches such kernels is ahead of the card without a
 * queue. Once launches are queued the bound is a little higher, because each change between the two ways costs a turn.
 */
#define LAUNCH_MAX        (80 * NS_PER_US)
#define LAUNCH_MAX_QUEUED (90 * NS_PER_US)

/* AVERAGE_OVER: one launch has a weight of 1 / AVERAGE_OVER in the average. In a training step, the tens of launches of
 * the optimizer are longer than those of the layers, and must not change the average much. */
enum { THREAD_STACK = 256 * 1024, AVERAGE_OVER = 256 };

void gate_queue_note_launch(struct gate *gate, uint64_t estimate) {
    if (!estimate) return;
    uint64_t past = gate->launch_ns ? gate->launch_ns : estimate;
    gate->launch_ns = (past * (AVERAGE_OVER - 1) + estimate) / AVERAGE_OVER;
}

static bool has_short_launches(const struct gate *gate) {
    return gate->launch_ns <= (gate->is_queue_turn ? LAUNCH_MAX_QUEUED : LAUNCH_MAX);
}

bool gate_queue_is_worth_it(const struct gate *gate) {
    return has_short_launches(gate) && container_share(gate->request.uuid) == 0 &&
           arbiter_link_contention(&gate->request.link) == CONTENTION_ARBITRATED && queue_page_is_usable();
}

static uint64_t ask_at(const struct gate *gate) {
    if (!gate->is_host_bound_period || gate->is_turn_wanted || gate->is_host_waiting) return 0;
    return min_u64(max_u64(host_periods_ask_at(&gate->periods), gate->queued_since), gate->last_launch_at + SILENCE);
}

/* What is still closed is queued for the next turn, which is asked for at once. */
static void set_phase_after_turn(struct gate *gate) {
    bool is_queuing = segments_any_closed(&gate->segments);
    gate->queued_since = clock_now();
    gate->is_turn_wanted = is_queuing;
    gate_set_phase(gate, is_queuing ? QUEUING : SHUT);
}

/* The caller holds LOCK_GATE, which is released meanwhile; the phase is OPEN. */
static void end_turn(struct gate *gate, bool may_ask_driver, bool is_given_back) {
    gate->phase = CLOSING;
    {
        RELEASE_GATE(gate);
        gate_queue_end_turn(gate, may_ask_driver, is_given_back);
    }
    set_phase_after_turn(gate);
}

/* While the turn is waited for, launches are queued. Without the arbiter all of them are opened, so that nothing waits
 * for longer than turn_request_take does. */
static void take_turn(struct gate *gate) {
    gate->is_turn_awaited = true;
    struct turn_limits limits = gate_take_turn(gate);
    gate->is_turn_awaited = false;
    if (gate->phase != QUEUING) return;
    activity_count_wait(gate->request.activity, REGION_WAIT_QUEUED, clock_now() - gate->queued_since);
    queue_pace_begin(gate, limits);
    if (turn_request_is_arbitrated(&gate->request))
        queue_pace_step(gate, clock_now());
    else
        queue_pace_open_all(gate);
    gate_set_phase(gate, OPEN);
}

/* Whether the turn may be given back as soon as nothing is launched. A program that keeps the card busy keeps its turn
 * until the arbiter asks it back, because its pauses are short. */
static bool is_idle(const struct gate *gate) {
    return gate->is_queue_turn && gate->is_host_bound_period && gate->launches_in_driver == 0 &&
           !segments_any_closed(&gate->segments);
}

static uint64_t idle_at(const struct gate *gate) {
    return gate->is_host_waiting ? 0 : max_u64(gate->turn.drains_at, gate->last_launch_at) + IDLE_TIMEOUT;
}

/* The turn goes on if only its time has to be charged. */
static bool is_turn_over(const struct gate *gate) {
    return turn_request_is_asked_to_yield(&gate->request) ||
           !turn_request_is_unbounded(&gate->request, gate->turn.expected);
}

/* Until the next segment may be opened, only the arbiter has something to say. */
static void await_pace(struct gate *gate, uint64_t ns) {
    uint32_t turn = gate->request.arbiter_turn.number;
    if (!turn) {
        gate_await_change(gate, ns);
        return;
    }
    RELEASE_GATE(gate);
    arbiter_link_await_yield(&gate->request.link, turn, ns);
}

static void serve_turn(struct gate *gate, uint64_t now) {
    enum verdict verdict = queue_pace_step(gate, now);
    uint64_t wait = LOOK_INTERVAL;
    if (verdict == VERDICT_FULL) {
        end_turn(gate, false, is_turn_over(gate));
        return;
    }
    if (verdict == VERDICT_TOO_DEEP) wait = queue_pace_due_in(gate, now);
    if (gate->is_host_bound_period) wait = min_u64(wait, IDLE_TIMEOUT);
    if (is_idle(gate)) wait = idle_at(gate) - min_u64(now, idle_at(gate));
    if (wait && verdict == VERDICT_TOO_DEEP)
        await_pace(gate, wait);
    else if (wait)
        gate_await_change(gate, wait);
    else
        end_turn(gate, false, true);
}

/* The caller holds LOCK_GATE, which is released meanwhile. */
static void serve_once(struct gate *gate) {
    uint64_t now = clock_now(), due = gate->phase == QUEUING ? ask_at(gate) : now + LOOK_INTERVAL;
    if (gate->phase == OPEN && gate->is_queue_turn)
        serve_turn(gate, now);
    else if (gate->phase == QUEUING && now >= due)
        take_turn(gate);
    else
        gate_await_change(gate, due - now);
}

static void *serve(void *argument) {
    struct gate *gate = argument;
    system_prctl(PR_SET_NAME, (unsigned long)"vgpu-queue");
    system_prctl(PR_SET_TIMERSLACK, 1);
    gate_lock(gate);
    gate->is_thread_running = true;
    for (;;) serve_once(gate);
    return NULL;
}

/* The events are used without LOCK_GATE, so the phase is CLOSING meanwhile. */
static void collect(struct gate *gate) {
    if (!gate->set_aside.is_valid || gate->launches_in_driver) return;
    gate->phase = CLOSING;
    RELEASE_GATE(gate);
    gate_measure_collect(gate);
}

/* Whether the gate's thread runs. Until it has begun, launches take turns without being queued: what is queued behind a
 * closed wait needs that thread. */
static bool ensure_thread(struct gate *gate) {
    if (gate->has_thread) return gate->is_thread_running;
    gate->has_thread = true;
    RELEASE_GATE(gate);
    if (!quiet_thread_start(THREAD_STACK, serve, gate)) queue_page_refuse();
    return false;
}

/* Takes the turn that is at hand. The caller holds LOCK_GATE, which is released meanwhile. */
static enum phase take_at_once(struct gate *gate) {
    struct turn_limits limits = gate_take_turn(gate);
    queue_pace_begin(gate, limits);
    return OPEN;
}

enum phase gate_queue_begin(struct gate *gate) {
    if (!ensure_thread(gate)) return SHUT;
    collect(gate);
    gate->segments.is_sealed = true;
    gate->queued_since = gate->last_launch_at = clock_now();
    gate->is_turn_wanted = false;
    __atomic_store_n(&gate->is_host_waiting, false, __ATOMIC_RELAXED);
    gate->is_host_bound_period = host_periods_is_host_bound(&gate->periods);
    return turn_request_is_at_hand(&gate->request) ? take_at_once(gate) : QUEUING;
}

/* With more streams than the table has room for, a stream may wait twice for a segment. The entries of launches that
 * are in the driver are in use. */
static bool find_slot(struct gate *gate, const struct queued_launch *launch, struct launch_slot *slot) {
    if (turn_events_find_slot(gate_events(gate), launch->context, launch->stream, slot)) return true;
    if (gate->launches_in_driver) return false;
    turn_events_reset(gate_events(gate));
    return turn_events_find_slot(gate_events(gate), launch->context, launch->stream, slot);
}

static void fill_slot(struct gate *gate, struct segment_place place, bool is_open, struct launch_slot *slot) {
    slot->is_first = false;
    slot->gate = gate->index;
    slot->segment = (uint32_t)place.number;
    slot->marks = place.is_new;
    slot->waits = !is_open && slot->end->segment != place.number;
    slot->end->segment = place.number;
}

/* The gate's thread is woken for the first closed launch of a turn. */
static void note_closed(struct gate *gate, bool is_first) {
    if (gate->phase == OPEN && is_first) gate_note_change(gate);
}

enum verdict gate_queue_admit(struct gate *gate, const struct queued_launch *launch, uint64_t now,
                              struct launch_slot *slot) {
    struct segments *segments = &gate->segments;
    bool is_first = !segments_any_closed(segments);
    if (!has_short_launches(gate)) return is_first ? VERDICT_UNMEASURED : VERDICT_TOO_DEEP;
    bool is_open = gate->phase == OPEN && queue_pace_may_run(gate, launch->estimate, now);
    if (!segments_has_room(segments, launch->estimate)) return VERDICT_TOO_DEEP;
    if (!find_slot(gate, launch, slot)) return is_first ? VERDICT_UNMEASURED : VERDICT_TOO_DEEP;
    struct segment_place place = segments_add(segments, launch->estimate, queue_pace_segment(gate), is_open);
    fill_slot(gate, place, is_open, slot);
    queue_sample_note_launch(&gate->sample, launch, place, segments->opened, slot);
    if (is_open && place.number == gate->first_segment) queue_sample_note_delay(&gate->sample, place.number);
    if (is_open)
        queue_pace_note_run(gate, launch->estimate, now);
    else
        note_closed(gate, is_first);
    return VERDICT_FITS;
}

void gate_queue_read_sample(struct gate *gate) {
    uint64_t measured;
    bool is_over = queue_sample_read(&gate->sample, &measured);
    HOLD_GATE(gate);
    if (is_over)
        queue_sample_learn(&gate->sample, &gate->estimates, measured);
    else
        queue_sample_note_unfinished(&gate->sample);
}

void gate_queue_want_turn(struct gate *gate) {
    if (gate->is_turn_wanted) return;
    gate->is_turn_wanted = true;
    gate_note_change(gate);
}

void gate_queue_end_turn(struct gate *gate, bool may_ask_driver, bool is_given_back) {
    uint64_t rest = turn_remaining(&gate->turn, clock_now());
    gate->has_ends = is_given_back && may_ask_driver && turn_events_record_ends(gate_events(gate), NULL);
    if (is_given_back)
        turn_request_give_back(&gate->request, rest,
                               gate->has_ends && __atomic_load_n(&gate->is_host_waiting, __ATOMIC_RELAXED));
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
    turn_request_charge(&gate->request, gate->turn.expected);
}

static void begin_wait(struct gate *gate, struct host_wait *wait) {
    HOLD_GATE(gate);
    bool is_queued = gate->phase == QUEUING || (gate->phase == OPEN && gate->is_queue_turn);
    wait->ends_period = host_periods_note_host_wait(&gate->periods, wait->since) && is_queued;
    __atomic_store_n(&gate->is_host_waiting, true, __ATOMIC_RELAXED);
    gate->is_host_bound_period = host_periods_is_host_bound(&gate->periods);
    if (gate->phase == QUEUING) gate_note_change(gate);
    if (gate->phase == OPEN && is_idle(gate))
        end_turn(gate, true, true);
    else if (gate->phase == OPEN)
        queue_pace_note_awaited(gate);
}

struct host_wait gate_queue_begin_wait(void) {
    struct host_wait wait = {0};
    if (gate_is_used()) wait.gate = gate_of_current_context();
    if (!wait.gate) return wait;
    wait.since = clock_now();
    begin_wait(wait.gate, &wait);
    return wait;
}

/* The events are used without LOCK_GATE, so the phase is CLOSING meanwhile. */
static void note_drained(struct gate *gate) {
    RELEASE_GATE(gate);
    if (!turn_events_are_done(gate_events(gate))) return;
    turn_request_note_drained(&gate->request);
    turn_bound_drain(&gate->turn, 0, clock_now());
}

/* Tells the arbiter when the work of a turn that was given back has drained. The arbiter waits for that before it gives
 * the next turn to a best-effort tenant; and if the work took less time than announced, the card would stay idle until
 * the announced time. */
static void correct_drain_time(struct gate *gate) {
    gate->phase = CLOSING;
    note_drained(gate);
    gate->has_ends = false;
    gate_set_phase(gate, SHUT);
}

void gate_queue_end_wait(const struct host_wait *wait) {
    struct gate *gate = wait->gate;
    if (!gate) return;
    HOLD_GATE(gate);
    uint64_t now = clock_now();
    struct region_activity *activity = turn_request_activity(&gate->request);
    activity_count_synchronize(activity, now - wait->since);
    if (wait->ends_period) host_periods_note_waited(&gate->periods, now - wait->since);
    if (gate->phase == OPEN) {
        if (now > wait->since + WAIT_MIN) turn_note_busy(&gate->turn, now);
        turn_request_note_awaited(&gate->request, 0);
        turn_request_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    }
    if (gate->phase == SHUT && gate->has_ends) correct_drain_time(gate);
}

/* The caller holds LOCK_GATE. */
static bool is_queued(const struct gate *gate) { return segments_any_closed(&gate->segments); }

/* While another thread asks for the turn or closes it, `request` and `turn` are its own. */
static void open_all(struct gate *gate) {
    bool may_charge = gate->phase == OPEN || (gate->phase == QUEUING && !gate->is_turn_awaited);
    if (may_charge)
        queue_pace_open_all(gate);
    else
        queue_pace_release_all(gate);
}

void gate_queue_flush(struct gate *gate) {
    uint64_t until = clock_now() + LOOK_INTERVAL;
    while (is_queued(gate) && clock_now() < until) {
        if (gate->phase == QUEUING) gate_queue_want_turn(gate);
        gate_await_change(gate, LOOK_INTERVAL / 100);
    }
    open_all(gate);
    if (gate->phase == QUEUING) gate_set_phase(gate, SHUT);
}

static uint64_t time_to_drain(struct gate *gate) {
    HOLD_GATE(gate);
    if (!is_queued(gate)) return 0;
    gate_queue_flush(gate);
    if (!gate_await_closed(gate)) return DRAIN_MAX;
    return min_u64(turn_remaining(&gate->turn, clock_now()) + DRAIN_SLACK, DRAIN_MAX);
}

void gate_queue_drain(struct gate *gate) {
    uint64_t wait = time_to_drain(gate);
    if (wait) system_sleep(wait);
}
