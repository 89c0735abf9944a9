#include "compute/gate/queue_pace.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/link/card_turn.h"
#include "compute/link/container_turn.h"
#include "compute/queue/queue_page.h"
#include "region/activity.h"

/* GPU time of a segment. A wait and a write take 6 us of the card (H200), and a thread that sleeps wakes up to 100 us
 * late. A host-bound program queues little for each turn, of which a segment is to be measured. A turn ends with a
 * whole segment, so short turns, whose depth is small, have small ones. */
#define SEGMENT_MIN        (150 * NS_PER_US)
#define SEGMENT_SMALL      (250 * NS_PER_US)
#define SEGMENT_HOST_BOUND (600 * NS_PER_US)
#define SEGMENT_MAX        (1000 * NS_PER_US)

/* What is open ahead of the segment that the card works on is half of what may be in flight; not less than this, as far
 * as the arbiter allows it, because the gate's thread wakes up to 0.1 ms late, and each look opens one segment. */
#define OPEN_AHEAD_MIN (500 * NS_PER_US)
#define OPEN_AHEAD_MAX (5 * NS_PER_MS)

/* Longest and shortest sleep before the next look at how far the card is. */
#define LOOK_MIN (20 * NS_PER_US)
#define LOOK_MAX (1 * NS_PER_MS)

/* The work of a stream may wait for something else than the card. So a segment that the card has not begun for this
 * long after it should have does not hold back the next ones. */
#define STUCK_AFTER (5 * NS_PER_MS)

/* Longest gap between the launches of a host-bound program in its turn: longer than IDLE_TIMEOUT of gate_queue.c. */
#define HOST_GAP_MAX (300 * NS_PER_US)

/* How much longer than estimated a turn may take while the host waits for it, besides a quarter of its estimates. */
#define BUSY_SLACK (500 * NS_PER_US)

/* Likewise where kernels may spin until those on other cards of a job have begun. */
#define JOB_SLACK (50 * NS_PER_MS)

uint64_t queue_pace_segment(const struct gate *gate) {
    uint64_t most = gate->host.is_bound || !gate->queue.depth ? SEGMENT_HOST_BOUND : SEGMENT_MAX;
    uint64_t part = max_u64(gate->queue.depth / 6, min_u64(gate->queue.depth / 2, SEGMENT_SMALL));
    return max_u64(SEGMENT_MIN, min_u64(gate->queue.depth ? part : most, most));
}

static uint64_t open_ahead(uint64_t depth) {
    uint64_t least = min_u64(depth, OPEN_AHEAD_MIN);
    return max_u64(SEGMENT_MIN, min_u64(max_u64(depth / 2, least), OPEN_AHEAD_MAX));
}

void queue_pace_begin(struct gate *gate, struct turn_limits limits) {
    uint64_t now = clock_now(), drains_at = gate->turn.drains_at;
    gate->queue.depth = limits.depth;
    limits.depth = open_ahead(limits.depth);
    gate->turn = turn_open(now, limits);
    turn_set_free_at(&gate->turn, max_u64(drains_at, card_turn_free_at(&gate->request)));
    gate->queue.first_segment = gate->queue.segments.opened + 1;
    gate->queue.progress_at = now;
}

static void apply_progress(struct gate *gate, uint64_t now) {
    struct segments *segments = &gate->queue.segments;
    uint64_t before = segments->begun;
    segments_note_begun(segments, queue_page_begun(gate->index, (uint32_t)segments->begun));
    if (segments->begun != before) gate->queue.progress_at = now;
    uint64_t begun_ns = segments_begun_ns(segments), not_begun_ns = segments_not_begun_ns(segments);
    bool is_stuck =
        not_begun_ns && now > max_u64(gate->queue.progress_at, turn_free_at(&gate->turn)) + 4 * begun_ns + STUCK_AFTER;
    if (is_stuck) segments->begun = segments->opened;
    bool is_in_turn = segments->begun >= gate->queue.first_segment && !is_stuck;
    turn_bound_drain(&gate->turn, not_begun_ns ? now + not_begun_ns : 0,
                     is_in_turn ? now + not_begun_ns + begun_ns : UINT64_MAX);
}

static enum verdict judge(struct gate *gate, uint64_t estimate, uint64_t now) {
    if (gate->turn.launches && card_turn_is_asked_to_yield(&gate->request)) return VERDICT_FULL;
    apply_progress(gate, now);
    if (turn_is_late(&gate->turn, estimate, now)) return VERDICT_FULL;
    return turn_judge(&gate->turn, true, estimate, now);
}

/* The gate's thread gives the turn of a host-bound program back itself when the host is silent, so the arbiter is not
 * to revoke it in each gap between launches. */
void queue_pace_note_run(struct gate *gate, uint64_t estimate, uint64_t now) {
    uint64_t host_gap = gate->host.is_bound ? HOST_GAP_MAX : 0;
    turn_add(&gate->turn, true, estimate, now);
    container_turn_extend(&gate->request, gate->turn.drains_at + host_gap + ARBITRATION_BUSY_GRACE_NS);
}

static void open_next(struct gate *gate, uint64_t now) {
    const struct segment *next = segments_next(&gate->queue.segments);
    queue_pace_note_run(gate, next->expected, now);
    gate->turn.launches += next->launches - 1;
    activity_count_queued(gate->request.activity, next->launches);
    uint64_t number = segments_open_next(&gate->queue.segments);
    if (number == gate->queue.first_segment) queue_sample_note_delay(&gate->queue.sample, number);
    queue_page_open(gate->index, (uint32_t)number);
    if (gate->host.is_waiting) queue_pace_note_awaited(gate);
}

enum verdict queue_pace_step(struct gate *gate, uint64_t now) {
    enum verdict verdict = VERDICT_FITS;
    bool has_opened = false;
    while (segments_any_closed(&gate->queue.segments)) {
        verdict = judge(gate, segments_next(&gate->queue.segments)->expected, now);
        if (verdict != VERDICT_FITS) break;
        open_next(gate, now);
        has_opened = true;
    }
    if (has_opened) gate_note_change(gate);
    return verdict;
}

void queue_pace_open_all(struct gate *gate) {
    while (segments_any_closed(&gate->queue.segments)) open_next(gate, clock_now());
}

void queue_pace_release_all(struct gate *gate) {
    while (segments_any_closed(&gate->queue.segments))
        queue_page_open(gate->index, (uint32_t)segments_open_next(&gate->queue.segments));
}

/* Looks again at the earlier of two times, by the estimates of the open work that is not done. When that work is down
 * to the turn's depth, the next segment may be opened. When it is down to the segments that the card has not begun, the
 * card should begin the next of them: if it is late, everything behind that segment is late, too. */
uint64_t queue_pace_due_in(const struct gate *gate, uint64_t now) {
    uint64_t rest = turn_remaining(&gate->turn, now);
    uint64_t least = max_u64(gate->turn.limits.depth, segments_not_begun_ns(&gate->queue.segments));
    return max_u64(LOOK_MIN, min_u64(rest - min_u64(rest, least), LOOK_MAX));
}

bool queue_pace_may_run(struct gate *gate, uint64_t estimate, uint64_t now) {
    return !segments_any_closed(&gate->queue.segments) && judge(gate, estimate, now) == VERDICT_FITS;
}

void queue_pace_note_awaited(struct gate *gate) {
    uint64_t slack = gate->turn.is_unknown ? ARBITRATION_LONG_KERNEL_NS : gate->turn.expected / 4 + BUSY_SLACK;
    if (card_turn_is_of_job(&gate->request)) slack = max_u64(slack, JOB_SLACK);
    container_turn_note_awaited(&gate->request, gate->turn.drains_at + slack);
}
