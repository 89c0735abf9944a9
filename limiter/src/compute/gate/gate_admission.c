#include "compute/gate/gate_admission.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/limits.h"
#include "compute/gate/gate_queue.h"
#include "compute/gate/gate_turns.h"
#include "compute/gate/joint_pass.h"
#include "compute/link/card_turn.h"
#include "compute/link/container_turn.h"
#include "compute/link/linked_window.h"
#include "compute/queue/queue_page.h"
#include "compute/turn/estimates.h"
#include "compute/turn/suitable_turn.h"
#include "compute/turn/turn.h"
#include "region/activity.h"

void gate_admission_note_arrival(struct gate *gate) {
    struct gate_host *host = &gate->host;
    backlog_note_arrival(&host->backlog, clock_now());
    arbiter_link_note_steps(&gate->request.link,
                            suitable_turn(host->backlog.known_ns, host_periods_step_ns(&host->periods)),
                            host_periods_awaited_ns(&host->periods));
}

/* Most launches of a joint turn pass without being seen here (joint_pass.h). */
static void learn_host(struct gate *gate, const struct queued_launch *launch, uint64_t now) {
    backlog_note_launch(&gate->host.backlog, turn_remaining(&gate->turn, now) + gate->queue.segments.closed_ns, now);
    host_periods_note_launch(&gate->host.periods, launch->estimate, now);
    gate_queue_note_launch(gate, launch->estimate);
}

/* What every admitted launch does. */
static void note_admitted(struct gate *gate, const struct queued_launch *launch, const struct launch_slot *slot,
                          uint64_t now) {
    if (slot->is_sampled) {
        gate->turn_sample.key = launch->key;
        gate->turn_sample.is_in_driver = true;
        gate->turn_sample.is_early = early_launches_are_any(&gate->turn.early);
    }
    gate->turn_sample.is_chosen |= slot->is_sampled;
    __atomic_store_n(&gate->works_until, max_u64(gate->turn.drains_at, now) + GATE_WORK_TIMEOUT, __ATOMIC_RELAXED);
    gate->host.last_launch_at = now;
    __atomic_store_n(&gate->host.is_waiting, false, __ATOMIC_RELAXED);
    gate->in_driver++;
    activity_note_launch(container_turn_activity(&gate->request), now);
    if (gate->phase != GATE_OPEN || !gate->turn.limits.is_joint) learn_host(gate, launch, now);
}

/* A joint turn is charged every 10 ms, and one launch in as many of these times is sampled whose estimate is not young:
 * seldom, because the events around a launch cost as much as it, and often enough to find an estimate that is far too
 * long within a second or two. */
enum { SAMPLED_CHARGES = 16, RANDOM_SHIFT = 8 };

static bool samples_in_charge(const struct gate *gate) {
    return (gate->turn_sample.random >> RANDOM_SHIFT) % SAMPLED_CHARGES == 0;
}

/* Which launches of a joint turn do not pass is chance. */
static bool is_to_be_sampled(const struct gate *gate, bool is_known, uint64_t key) {
    if (gate->turn_sample.is_chosen) return false;
    if (gate->turn.limits.is_joint) return estimates_is_young(&gate->estimates, key) || samples_in_charge(gate);
    return !is_known || gate->turn.launches == gate->turn_sample.index;
}

/* While a launch without an estimate is measured, no launch may pass the lock. While launches go early, none may
 * either: the overdraft is asked behind the lock. Kinds whose estimate is young take the gate's way until it is not:
 * one that is far too long would else be the last to pass each time, and never be sampled.
 */
static void update_joint_pass(struct gate *gate, bool is_known, const struct queued_launch *launch) {
    if (!is_known || early_launches_are_any(&gate->turn.early))
        joint_pass_close(&gate->joint_pass);
    else if (!estimates_is_young(&gate->estimates, launch->key))
        joint_pass_open(&gate->joint_pass, gate->request.arbiter_turn.number, launch->key, launch->estimate);
}

/* In a job's turn a batch is not interrupted for what is in flight: its thread launches for the job's next card then.
 */
static enum verdict judge_by_limits(const struct gate *gate, bool is_known, uint64_t estimate, uint64_t now) {
    enum verdict verdict = turn_judge(&gate->turn, is_known, estimate, now);
    bool is_held_up = verdict == VERDICT_TOO_DEEP && card_turn_is_of_job(&gate->request);
    return is_held_up && linked_window_is_in_batch(&gate->request, now) ? VERDICT_FITS : verdict;
}

/* The job's turn is asked back: its cards end their launches at the same point of the program. */
static enum linked_verdict judge_last(const struct gate *gate, bool is_known, uint64_t now, enum verdict *verdict) {
    enum linked_verdict linked = linked_window_judge_last(&gate->request, gate->turn.expected, now);
    if (linked == LINKED_FULL)
        *verdict = VERDICT_FULL;
    else if (*verdict == VERDICT_FULL && is_known)
        *verdict = VERDICT_FITS;
    return linked;
}

/* The window was opened while the container had the card to itself. Its turns are the arbiter's now. */
static bool has_become_contended(const struct gate *gate) {
    return !card_turn_is_held(&gate->request) && arbiter_link_is_contended(&gate->request.link);
}

/* What a window admits beyond its budget is counted by estimates. */
static bool may_go_beyond(const struct gate *gate, bool is_known, enum verdict verdict) {
    return verdict == VERDICT_FULL && is_known && !has_become_contended(gate);
}

/* A turn that admits launches early is no window of linked cards. */
static enum linked_verdict judge(const struct gate *gate, bool is_known, const struct queued_launch *launch,
                                 uint64_t now, enum verdict *verdict) {
    const struct turn *turn = &gate->turn;
    *verdict = judge_by_limits(gate, is_known, launch->estimate, now);
    bool is_apart = turn->launches == 0 || early_launches_are_any(&turn->early) || turn->limits.budget == UINT64_MAX;
    if (is_apart) return LINKED_FITS;
    if (card_turn_is_of_job(&gate->request)) {
        if (card_turn_is_asked_to_yield(&gate->request)) return judge_last(gate, is_known, now, verdict);
        if (gate->request.share >= FULL_CORES || card_turn_spans(&gate->request)) return LINKED_FITS;
    }
    if (*verdict != VERDICT_FITS && !may_go_beyond(gate, is_known, *verdict)) return LINKED_FITS;
    enum linked_verdict linked = linked_window_judge(&gate->request, turn->expected, *verdict == VERDICT_FITS, now);
    *verdict = linked == LINKED_FULL ? VERDICT_FULL : VERDICT_FITS;
    return linked;
}

/* Whether the turn admits no launch any more because it is asked back. */
static bool has_to_end(const struct gate *gate) {
    return card_turn_is_asked_to_yield(&gate->request) && !card_turn_is_of_job(&gate->request);
}

/* Decides on one launch and, if it fits, adds it to the turn. A turn's first launch is admitted even if there is no
 * room for its events, so that every turn makes progress. */
static enum verdict admit_to_turn(struct gate *gate, bool is_known, const struct queued_launch *launch, uint64_t now,
                                  struct launch_slot *slot) {
    if (gate->turn.limits.is_joint) gate_turns_count_passed(gate, now);
    bool is_first = gate->turn.launches == 0;
    bool is_early = early_launches_are_any(&gate->turn.early);
    if (!is_first && !is_early && has_to_end(gate)) return VERDICT_FULL;
    enum verdict verdict;
    enum linked_verdict linked = judge(gate, is_known, launch, now, &verdict);
    if (verdict != VERDICT_FITS) return verdict;
    bool has_slot = turn_events_find_slot(gate_events(gate), launch->context, launch->stream, slot);
    if (!has_slot && !is_first && !is_early && !gate->turn.limits.is_joint) return VERDICT_UNMEASURED;
    slot->is_sampled = is_to_be_sampled(gate, is_known, launch->key);
    turn_add(&gate->turn, is_known, launch->estimate, now);
    if (!is_early) linked_window_note_launch(&gate->request, gate->turn.expected, linked, now);
    gate->turn.is_doubtful |= launch->is_doubtful;
    slot->records_end_at_once =
        gate->host.has_left_gap || (is_early && !early_launches_may_be_awaited(&gate->turn.early));
    slot->probe_out = slot->context_events && turn_is_to_be_probed(&gate->turn) ? &gate_events(gate)->probe : NULL;
    if (slot->probe_out) turn_note_probe(&gate->turn);
    if (gate->turn.limits.is_joint) update_joint_pass(gate, is_known, launch);
    container_turn_extend(&gate->request, gate->turn.drains_at + ARBITRATION_BUSY_GRACE_NS);
    return VERDICT_FITS;
}

/* A launch without an estimate is measured alone, in a context without a page nothing can be queued, and in a joint
 * turn nothing need be: such a launch waits until nothing is queued before it. */
static enum verdict admit_to_queue(struct gate *gate, bool is_known, const struct queued_launch *launch, uint64_t now,
                                   struct launch_slot *slot) {
    bool is_joint = gate->phase == GATE_OPEN_QUEUE && gate->turn.limits.is_joint;
    if (!is_joint && is_known && queue_page_has(launch->context)) return gate_queue_admit(gate, launch, now, slot);
    return gate_is_queuing(gate->phase) || segments_any_closed(&gate->queue.segments) ? VERDICT_TOO_DEEP
                                                                                      : VERDICT_UNMEASURED;
}

/* The first launch of a turn is the one that is timed if it has no estimate. */
static bool is_like_first(const struct gate *gate, uint64_t key) {
    const struct turn_sample *sample = &gate->turn_sample;
    return gate->turn.launches && sample->is_chosen && !sample->is_early && sample->key == key;
}

enum verdict gate_admission_try(struct gate *gate, struct queued_launch *launch, struct launch_slot *slot) {
    enum gate_admission admission = gate_admission(gate->phase);
    if (admission == GATE_ADMITS_NONE) return VERDICT_FULL;
    uint64_t now = clock_now();
    launch->estimate = 0;
    bool is_known = estimates_of(&gate->estimates, launch->key, &launch->estimate);
    if (admission == GATE_ADMITS_OPENING) return is_known ? VERDICT_FULL : VERDICT_UNMEASURED;
    gate->turn.early.is_like_first = !is_known && is_like_first(gate, launch->key);
    launch->is_doubtful = estimates_is_doubtful(&gate->estimates, launch->key);
    enum verdict verdict = admission == GATE_ADMITS_TO_QUEUE ? admit_to_queue(gate, is_known, launch, now, slot)
                                                             : admit_to_turn(gate, is_known, launch, now, slot);
    if (verdict == VERDICT_FITS) note_admitted(gate, launch, slot, now);
    return verdict;
}

/* How much work has to be in flight for a launch to be held back; 0: it waits for a turn. */
static uint64_t depth_of(const struct gate *gate, enum verdict verdict) {
    if (verdict != VERDICT_TOO_DEEP) return 0;
    return gate->phase == GATE_OPEN ? gate->turn.limits.depth : UINT64_MAX;
}

void gate_admission_note_held_back(struct gate *gate, enum verdict verdict) {
    backlog_note_held_back(&gate->host.backlog, depth_of(gate, verdict));
}

void gate_admission_note_waited(struct gate *gate, uint64_t ns) {
    host_periods_note_wait(&gate->host.periods, ns);
    container_turn_count_wait(&gate->request, ns);
}
