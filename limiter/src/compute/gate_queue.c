#include "compute/gate_queue.h"

#include <signal.h>
#include <sys/prctl.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/nocancel.h"
#include "compute/gate_measure.h"
#include "compute/queue_page.h"
#include "container/container.h"
#include "region/activity.h"

/* Bounds of a batch. A hardware channel takes 1,020 launches, 734 with 4,000 bytes of parameters each, before the
 * driver blocks the host (H200, driver 580); events and copies of the program count, too. */
enum { BATCH_LAUNCHES = 480 };
#define BATCH_GPU_TIME (8 * NS_PER_MS)

/* The host is taken to wait if it launches nothing for this long: longer than the gaps between the launches of an
 * interpreter, as short as a handover. */
#define SILENCE (200 * NS_PER_US)

/* A batch's turn is given back when the card has been idle for this long. */
#define IDLE_TIMEOUT (200 * NS_PER_US)

/* Longest time between two looks of the gate's thread at the gate, and of gate_queue_flush for a turn. */
#define LOOK_INTERVAL (1000 * NS_PER_MS)

/* How much longer than estimated a turn may take while the host waits for it, besides a quarter of its estimates. */
#define BUSY_SLACK (500 * NS_PER_US)

/* Longest wait of gate_queue_drain for work whose wait is open. */
#define DRAIN_MAX (100 * NS_PER_MS)

enum { THREAD_STACK = 256 * 1024 };

bool gate_queue_is_worth_it(const struct gate *gate) {
    return container_share(gate->request.uuid) == 0 &&
           arbiter_link_contention(&gate->request.link) == CONTENTION_ARBITRATED && queue_page_is_usable();
}

static uint64_t ask_at(const struct gate *gate) {
    if (!gate->is_host_bound_batch || gate->is_turn_wanted || gate->is_host_waiting) return 0;
    return min_u64(max_u64(host_periods_ask_at(&gate->periods), gate->queued_since), gate->last_launch_at + SILENCE);
}

static void set_aside(struct gate *gate, bool may_ask_driver) {
    gate_unlock(gate);
    gate_queue_end_turn(gate, may_ask_driver);
    gate_lock(gate);
    gate_set_phase(gate, SHUT);
}

/* The estimates may be too short: the card counts as busy while the host waits for it. */
static void note_awaited(struct gate *gate) {
    uint64_t slack = gate->turn.expected / 4 + BUSY_SLACK;
    turn_request_note_awaited(&gate->request, gate->turn.drains_at + slack);
}

static void open_batch(struct gate *gate, struct turn_limits limits) {
    uint64_t now = clock_now();
    turn_begin_queued(&gate->turn, limits, turn_request_free_at(&gate->request), now);
    turn_request_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    if (gate->is_host_waiting) note_awaited(gate);
    gate->is_queue_turn = true;
    gate->depth = limits.depth;
    gate->is_turn_wanted = false;
    queue_page_open(gate->index, gate->batch);
    activity_count_wait(gate->request.activity, REGION_WAIT_QUEUED, now - gate->queued_since);
    activity_count_queued(gate->request.activity, gate->turn.launches);
    gate_set_phase(gate, OPEN);
}

/* While the turn is waited for, launches are added to the batch. */
static void take_turn(struct gate *gate) {
    gate_unlock(gate);
    struct turn_limits limits = turn_request_take(&gate->request);
    gate_lock(gate);
    if (gate->phase == QUEUING) open_batch(gate, limits);
}

/* Whether the turn may be given back as soon as nothing is launched. A program that keeps the card busy keeps its turn
 * until the arbiter asks it back, because its pauses are short. */
static bool is_idle(const struct gate *gate) {
    return gate->is_queue_turn && gate->is_host_bound_batch && gate->launches_in_driver == 0;
}

static uint64_t idle_at(const struct gate *gate) {
    return gate->is_host_waiting ? 0 : max_u64(gate->turn.drains_at, gate->last_launch_at) + IDLE_TIMEOUT;
}

/* When the gate's thread has something to do. */
static uint64_t next_due(const struct gate *gate, uint64_t now) {
    if (gate->phase == QUEUING) return ask_at(gate);
    if (gate->phase == OPEN && is_idle(gate)) return idle_at(gate);
    return now + LOOK_INTERVAL;
}

/* The caller holds LOCK_GATE, which is released meanwhile. */
static void serve_once(struct gate *gate) {
    uint64_t now = clock_now(), due = next_due(gate, now);
    if (now < due) {
        gate_await_change(gate, due - now);
        return;
    }
    if (gate->phase == QUEUING) {
        take_turn(gate);
        return;
    }
    gate->phase = CLOSING;
    set_aside(gate, false);
}

static void *serve(void *argument) {
    struct gate *gate = argument;
    prctl(PR_SET_NAME, "vgpu-queue");
    prctl(PR_SET_TIMERSLACK, 1UL);
    gate_lock(gate);
    for (;;) serve_once(gate);
    return NULL;
}

/* The thread takes no signals, so that the program's handlers run in the program's threads. */
static bool start_thread(struct gate *gate) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    gate->has_thread = pthread_create(&thread, &attributes, serve, gate) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return gate->has_thread;
}

enum phase gate_queue_begin(struct gate *gate) {
    if (!gate->has_thread && !start_thread(gate)) {
        queue_page_refuse();
        return SHUT;
    }
    uint64_t now = clock_now();
    turn_events_reset(gate_events(gate));
    gate->turn = turn_open(now, (struct turn_limits){.budget = UINT64_MAX, .depth = UINT64_MAX, .age = UINT64_MAX});
    gate->batch++;
    gate->batch += gate->batch == 0; /* 0 stands for no batch */
    gate->queued_since = gate->last_launch_at = now;
    gate->is_turn_wanted = gate->is_host_waiting = gate->is_queue_turn = false;
    gate->is_host_bound_batch = host_periods_is_host_bound(&gate->periods);
    return QUEUING;
}

/* An opened batch is in flight as a whole, so it is as long as the work in flight of the last turn could be. */
static uint64_t batch_gpu_time(const struct gate *gate) { return min_u64(BATCH_GPU_TIME, gate->depth); }

enum verdict gate_queue_admit(struct gate *gate, uint64_t estimate, CUcontext context, CUstream stream,
                              struct launch_slot *slot) {
    struct turn *turn = &gate->turn;
    if (turn->launches >= BATCH_LAUNCHES || (turn->launches && turn->expected + estimate > batch_gpu_time(gate)))
        return VERDICT_FULL;
    if (!turn_events_find_slot(gate_events(gate), context, stream, slot)) return VERDICT_FULL;
    slot->is_sampled = turn->launches == gate->sample_index;
    slot->gate = gate->index;
    slot->batch = slot->end->batch == gate->batch ? 0 : gate->batch;
    slot->end->batch = gate->batch;
    turn_add_queued(turn, estimate);
    return VERDICT_FITS;
}

void gate_queue_want_turn(struct gate *gate) {
    if (gate->is_turn_wanted) return;
    gate->is_turn_wanted = true;
    gate_note_change(gate);
}

void gate_queue_end_turn(struct gate *gate, bool may_ask_driver) {
    uint64_t rest = turn_remaining(&gate->turn, clock_now());
    bool has_ends = may_ask_driver && rest && turn_events_record_ends(gate_events(gate), NULL);
    turn_request_give_back(&gate->request, rest);
    activity_count_turn_end(gate->request.activity, gate->turn.drains_at, gate->turn.idle_gaps, gate->turn.idle_ns);
    gate_measure_collect(gate, may_ask_driver);
    gate_measure_set_aside(gate, has_ends ? clock_now() : 0);
}

static void begin_wait(struct gate *gate, struct host_wait *wait) {
    gate_lock(gate);
    bool is_queued = gate->phase == QUEUING || (gate->phase == OPEN && gate->is_queue_turn);
    wait->ends_period = host_periods_note_host_wait(&gate->periods, wait->since) && is_queued;
    gate->is_host_waiting = true;
    if (gate->phase == QUEUING) gate_note_change(gate);
    if (gate->phase == OPEN && is_idle(gate)) {
        gate->phase = CLOSING;
        set_aside(gate, true);
    } else if (gate->phase == OPEN) {
        note_awaited(gate);
    }
    gate_unlock(gate);
}

struct host_wait gate_queue_begin_wait(void) {
    struct host_wait wait = {0};
    if (gate_is_used()) wait.gate = gate_of_current_context();
    if (!wait.gate) return wait;
    wait.since = clock_now();
    begin_wait(wait.gate, &wait);
    return wait;
}

/* A turn that was given back with more work than there was keeps the card idle until that time, unless the arbiter is
 * told. */
static void correct_drain_time(struct gate *gate) {
    gate->phase = CLOSING;
    gate_unlock(gate);
    if (gate_measure_is_drained(gate)) {
        turn_request_note_drained(&gate->request);
        gate_measure_collect(gate, true);
    }
    gate_lock(gate);
    gate_set_phase(gate, SHUT);
}

void gate_queue_end_wait(const struct host_wait *wait) {
    struct gate *gate = wait->gate;
    if (!gate) return;
    gate_lock(gate);
    uint64_t now = clock_now();
    struct region_activity *activity = __atomic_load_n(&gate->request.activity, __ATOMIC_RELAXED);
    activity_count_synchronize(activity, now - wait->since);
    if (wait->ends_period) host_periods_note_waited(&gate->periods, now - wait->since);
    if (gate->phase == OPEN) {
        turn_note_busy(&gate->turn, now);
        turn_request_note_awaited(&gate->request, 0);
        turn_request_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    }
    if (gate->phase == SHUT && gate->set_aside.is_valid) correct_drain_time(gate);
    gate_unlock(gate);
}

void gate_queue_flush(struct gate *gate) {
    gate_lock(gate);
    uint64_t until = clock_now() + LOOK_INTERVAL;
    while (gate->phase == QUEUING && clock_now() < until) {
        gate_queue_want_turn(gate);
        gate_await_change(gate, LOOK_INTERVAL / 100);
    }
    if (gate->phase == QUEUING) open_batch(gate, turn_limits_alone(0));
    gate_unlock(gate);
}

void gate_queue_drain(struct gate *gate) {
    gate_lock(gate);
    bool is_queued = gate->phase == QUEUING;
    gate_unlock(gate);
    if (!is_queued) return;
    gate_queue_flush(gate);
    gate_lock(gate);
    uint64_t rest = turn_remaining(&gate->turn, clock_now());
    gate_unlock(gate);
    nocancel_sleep(min_u64(rest + BUSY_SLACK, DRAIN_MAX));
}
