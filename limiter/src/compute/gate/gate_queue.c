#include "compute/gate/gate_queue.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/gate/queue_pace.h"
#include "compute/link/card_turn.h"
#include "compute/link/container_turn.h"
#include "compute/link/linked_window.h"
#include "compute/queue/queue_page.h"
#include "container/container.h"
#include "region/activity.h"

/* The host is taken to wait if it launches nothing for this long: longer than the gaps between the launches of an
 * interpreter, as short as a handover. */
#define SILENCE (200 * NS_PER_US)

/* The turn of a host-bound program is given back when the card has been idle for this long. */
#define IDLE_TIMEOUT (200 * NS_PER_US)

/* How much longer than estimated work may take whose drain is waited for. */
#define DRAIN_SLACK (500 * NS_PER_US)

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
enum { AVERAGE_OVER = 256 };

void gate_queue_note_launch(struct gate *gate, uint64_t estimate) {
    if (!estimate) return;
    uint64_t past = gate->queue.launch_ns ? gate->queue.launch_ns : estimate;
    gate->queue.launch_ns = (past * (AVERAGE_OVER - 1) + estimate) / AVERAGE_OVER;
}

static bool has_short_launches(const struct gate *gate) {
    return gate->queue.launch_ns <= (gate->is_queue_turn ? LAUNCH_MAX_QUEUED : LAUNCH_MAX);
}

/* In a joint turn launches need not wait on the card for anything. */
static bool has_joint_turn(const struct gate *gate) {
    return card_turn_is_joint(&gate->request) && !card_turn_is_asked_to_yield(&gate->request);
}

/* Segments end anywhere, and the cards of a job are to end their launches at the same point of the program. */
static bool is_of_job(const struct gate *gate) {
    return linked_window_is_any(&gate->request) && arbiter_turn_job(&gate->request.link) != 0;
}

bool gate_queue_is_worth_it(const struct gate *gate) {
    return !has_joint_turn(gate) && !is_of_job(gate) && has_short_launches(gate) &&
           container_share(gate->request.uuid) == 0 &&
           arbiter_link_contention(&gate->request.link) == CONTENTION_ARBITRATED && queue_page_is_usable();
}

uint64_t gate_queue_ask_at(const struct gate *gate) {
    if (!gate->host.is_bound || gate->host.is_waiting) return 0;
    return min_u64(max_u64(host_periods_ask_at(&gate->host.periods), gate->queue.since),
                   gate->host.last_launch_at + SILENCE);
}

void gate_queue_begin(struct gate *gate) {
    gate->queue.segments.is_sealed = true;
    gate->queue.since = gate->host.last_launch_at = clock_now();
    __atomic_store_n(&gate->host.is_waiting, false, __ATOMIC_RELAXED);
    gate->host.is_bound = host_periods_is_host_bound(&gate->host.periods);
}

/* Without the arbiter all segments are opened, so that nothing waits for longer than turn_request_take does. So they
 * are in a joint turn: no launch need be queued any more. */
void gate_queue_begin_turn(struct gate *gate, struct turn_limits limits) {
    activity_count_wait(gate->request.activity, REGION_WAIT_QUEUED, clock_now() - gate->queue.since);
    queue_pace_begin(gate, limits);
    if (limits.is_joint) queue_sample_spoil(&gate->queue.sample);
    if (card_turn_is_held(&gate->request) && !limits.is_joint)
        queue_pace_step(gate, clock_now());
    else
        queue_pace_open_all(gate);
}

bool gate_queue_is_idle(const struct gate *gate) {
    return gate->phase == GATE_OPEN_QUEUE && gate->host.is_bound && gate->in_driver == 0 &&
           !segments_any_closed(&gate->queue.segments);
}

static uint64_t idle_at(const struct gate *gate) {
    return gate->host.is_waiting ? 0 : max_u64(gate->turn.drains_at, gate->host.last_launch_at) + IDLE_TIMEOUT;
}

uint64_t gate_queue_look_at(const struct gate *gate, enum verdict verdict, uint64_t now) {
    if (gate_queue_is_idle(gate)) return idle_at(gate);
    uint64_t pace = verdict == VERDICT_TOO_DEEP ? now + queue_pace_due_in(gate, now) : UINT64_MAX;
    return gate->host.is_bound ? min_u64(pace, now + IDLE_TIMEOUT) : pace;
}

bool gate_queue_is_turn_over(const struct gate *gate) {
    return card_turn_is_asked_to_yield(&gate->request) ||
           !turn_request_is_unbounded(&gate->request, gate->turn.expected);
}

/* With more streams than the table has room for, a stream may wait twice for a segment. The entries of launches that
 * are in the driver are in use. */
static bool find_slot(struct gate *gate, const struct queued_launch *launch, struct launch_slot *slot) {
    if (turn_events_find_slot(gate_events(gate), launch->context, launch->stream, slot)) return true;
    if (gate->in_driver) return false;
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
    if (gate->phase == GATE_OPEN_QUEUE && is_first) gate_note_change(gate);
}

enum verdict gate_queue_admit(struct gate *gate, const struct queued_launch *launch, uint64_t now,
                              struct launch_slot *slot) {
    struct segments *segments = &gate->queue.segments;
    bool is_first = !segments_any_closed(segments);
    if (!has_short_launches(gate) || is_of_job(gate)) return is_first ? VERDICT_UNMEASURED : VERDICT_TOO_DEEP;
    bool is_open = gate->phase == GATE_OPEN_QUEUE && queue_pace_may_run(gate, launch->estimate, now);
    if (!segments_has_room(segments, launch->estimate)) return VERDICT_TOO_DEEP;
    if (!find_slot(gate, launch, slot)) return is_first ? VERDICT_UNMEASURED : VERDICT_TOO_DEEP;
    struct segment_place place = segments_add(segments, launch->estimate, queue_pace_segment(gate), is_open);
    fill_slot(gate, place, is_open, slot);
    queue_sample_note_launch(&gate->queue.sample, launch, place, segments->opened, slot);
    if (is_open && place.number == gate->queue.first_segment)
        queue_sample_note_delay(&gate->queue.sample, place.number);
    if (is_open)
        queue_pace_note_run(gate, launch->estimate, now);
    else
        note_closed(gate, is_first);
    return VERDICT_FITS;
}

bool gate_queue_end_turn(struct gate *gate, bool may_ask_driver, bool is_given_back) {
    uint64_t rest = turn_remaining(&gate->turn, clock_now());
    bool has_ends = is_given_back && may_ask_driver && turn_events_record_ends(gate_events(gate), NULL);
    if (is_given_back)
        turn_request_give_back(&gate->request, rest,
                               has_ends && __atomic_load_n(&gate->host.is_waiting, __ATOMIC_RELAXED));
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
    container_turn_charge(&gate->request, gate->turn.expected);
    return has_ends;
}

bool gate_queue_note_host_waits(struct gate *gate, uint64_t since) {
    bool is_queued = gate_is_queuing(gate->phase) || gate->phase == GATE_OPEN_QUEUE;
    bool ends_period = host_periods_note_host_wait(&gate->host.periods, since) && is_queued;
    __atomic_store_n(&gate->host.is_waiting, true, __ATOMIC_RELAXED);
    gate->host.is_bound = host_periods_is_host_bound(&gate->host.periods);
    return ends_period;
}

void gate_queue_note_host_waited(struct gate *gate, uint64_t ns, bool ends_period) {
    activity_count_synchronize(container_turn_activity(&gate->request), ns);
    if (ends_period) host_periods_note_waited(&gate->host.periods, ns);
}

void gate_queue_note_busy(struct gate *gate, uint64_t waited, uint64_t now) {
    if (waited > WAIT_MIN) turn_note_busy(&gate->turn, now);
    early_launches_end(&gate->turn.early);
    container_turn_note_awaited(&gate->request, 0);
    container_turn_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
}

void gate_queue_correct_drain(struct gate *gate) {
    if (!turn_events_are_done(gate_events(gate))) return;
    card_turn_note_drained(&gate->request);
    turn_bound_drain(&gate->turn, 0, clock_now());
}

uint64_t gate_queue_time_to_drain(const struct gate *gate) {
    return min_u64(turn_remaining(&gate->turn, clock_now()) + DRAIN_SLACK, GATE_QUEUE_DRAIN_MAX);
}
