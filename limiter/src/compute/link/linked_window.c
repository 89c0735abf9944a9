#include "compute/link/linked_window.h"

#include "common/clock.h"
#include "compute/link/launch_batch.h"
#include "container/container.h"
#include "region/token_bucket.h"

/* The most that one launch counts of the time that a card may have for others. */
#define FOR_OTHERS_COUNTED_MAX (5 * NS_PER_MS)

static const struct region_card *linked_card(const struct turn_request *request) {
    return __atomic_load_n(&request->linked_card, __ATOMIC_RELAXED);
}

bool linked_window_is_any(const struct turn_request *request) { return linked_card(request) != NULL; }

void linked_window_note_linked(struct turn_request *request, bool is_linked) {
    __atomic_store_n(&request->linked_card, is_linked ? request->card : NULL, __ATOMIC_RELAXED);
}

uint64_t linked_window_take(struct turn_request *request, struct linked_view *view, uint64_t now) {
    uint32_t window;
    linked_turn_read(view, request->card, now);
    struct linked_card own = linked_turn_own(request->card, request->share, now);
    uint64_t repay = linked_cards_wait(&own, view->others, view->count, &window);
    uint64_t wait =
        token_bucket_take_linked(request->card, request->holder_id, &request->ticket, request->share, repay, now);
    request->is_in_window = wait == 0;
    request->batches = 0;
    if (wait) return wait;
    request->for_others_ns = 0;
    linked_turn_open(request->card, window);
    return 0;
}

bool linked_window_spans(const struct turn_request *request) {
    return linked_window_is_any(request) && arbiter_turn_job_spans(&request->link);
}

/* Of the job's last turn, which the card may not have begun. */
static uint32_t batches_of_turn(const struct turn_request *request) {
    const struct region_activity *activity = request->activity;
    bool has_begun =
        activity && __atomic_load_n(&activity->window, __ATOMIC_RELAXED) == arbiter_turn_job(&request->link);
    return has_begun ? request->batches : 0;
}

bool linked_window_is_awaited_elsewhere(const struct turn_request *request) {
    const struct arbiter_link *link = &request->link;
    if (!linked_window_spans(request)) return false;
    if (arbiter_turn_is_job_awaited(link)) return true;
    bool has_just_ended = clock_now() < request->arbiter_turn.returned_at + ARBITER_TURN_JOB_END_MAX;
    return has_just_ended && arbiter_turn_job_batches(link) > batches_of_turn(request);
}

bool linked_window_seize(struct turn_request *request, bool is_sure, bool is_late) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    uint64_t now = clock_now();
    if (!region || (!is_sure && !linked_turn_is_other_awaited(request->card, is_late, now))) return false;
    return linked_turn_seize(request->card, request->holder_id, request->share, request->for_others_ns, now);
}

/* What a collective spins is not counted: its card would be waited for again, until its debts are repaid. */
void linked_window_note_for_others(struct turn_request *request, uint64_t cost) {
    request->for_others_ns = saturating_add(request->for_others_ns, min_u64(cost, FOR_OTHERS_COUNTED_MAX));
}

/* A part of the turn that is taken after another one goes on in the same window. */
void linked_window_open_for_job(struct turn_request *request) {
    if (linked_turn_open_for_job(request->card, request->arbiter_turn.job)) request->batches = 0;
    request->for_others_ns = 0;
    request->is_in_window = true;
}

uint64_t linked_window_await_debts(struct turn_request *request, struct linked_view *view, uint64_t now) {
    uint32_t unused;
    linked_turn_read(view, request->card, now);
    struct linked_card own = linked_turn_own(request->card, request->share, now);
    linked_cards_show_job(&own, view->others, view->count, arbiter_turn_job(&request->link));
    uint64_t repay = linked_cards_wait(&own, view->others, view->count, &unused);
    return token_bucket_take_linked(request->card, request->holder_id, &request->ticket, request->share, repay, now);
}

static struct linked_use use_of(const struct turn_request *request, uint64_t used) {
    const struct arbiter_turn *turn = &request->arbiter_turn;
    return (struct linked_use){.ns = used, .batches = request->batches, .job = turn->number ? turn->job : 0};
}

bool linked_window_is_in_batch(const struct turn_request *request, uint64_t now) {
    return launch_batch_goes_on(linked_turn_number(request->card), now);
}

enum linked_verdict linked_window_judge_last(const struct turn_request *request, uint64_t used, uint64_t now) {
    struct linked_use use = use_of(request, used);
    use.batches_elsewhere = arbiter_turn_job_batches(&request->link);
    return linked_turn_judge_last(request->card, use, linked_window_is_in_batch(request, now), now);
}

enum linked_verdict linked_window_judge(const struct turn_request *request, uint64_t used, bool fits, uint64_t now) {
    if (!request->is_in_window) return fits ? LINKED_FITS : LINKED_FULL;
    struct linked_use use = use_of(request, used);
    return linked_turn_judge(request->card, use, fits, linked_window_is_in_batch(request, now), now);
}

void linked_window_note_launch(struct turn_request *request, uint64_t used, enum linked_verdict verdict, uint64_t now) {
    if (!linked_window_is_any(request)) return;
    if (!linked_window_is_in_batch(request, now)) request->batches++;
    launch_batch_note(linked_turn_number(request->card), now);
    struct linked_use use = use_of(request, used);
    if (request->is_in_window) linked_turn_note_launch(request->card, use, verdict);
}

void linked_window_note_wait(const struct turn_request *request, bool is_begun) {
    const struct region_card *card = linked_card(request);
    if (card) linked_turn_note_awaited(card, is_begun);
}
