#include "compute/link/card_turn.h"

#include "common/clock.h"
#include "common/limits.h"
#include "compute/link/arbiter_link.h"
#include "compute/link/container_turn.h"
#include "compute/link/linked_window.h"
#include "region/activity.h"
#include "region/token_bucket.h"

/* While it waits for the arbiter, a process extends its turn of the container by this much each time;
 * arbiter_turn_await returns after 20 ms. */
#define WAITING_EXTENSION (50 * NS_PER_MS)

/* An arbiter that has a heartbeat but gives no turn for this long is ignored, and the process launches without one. The
 * longest kernels of four other containers may lie between two turns. */
#define ARBITER_TIMEOUT (5 * ARBITRATION_LONG_KERNEL_NS)

/* A launch that waits for the arbiter's turn. */
struct waiting_launch {
    struct turn_request *request;
    const struct early_request *early; /* NULL: it knows nothing of other cards of its process */
};

/* Another card of the job has work that should have ended: a kernel of it may spin until this launch. One launch at a
 * time, without a turn: the turn that it would have been part of has not ended. Of the process's own cards the driver
 * is asked: a thread that launches for one after the other waits here, and for none of them. */
static bool goes_for_others(void *argument) {
    const struct waiting_launch *launch = argument;
    struct turn_request *request = launch->request;
    const struct early_request *early = launch->early;
    bool is_sure =
        linked_window_is_awaited_elsewhere(request) || (early && early->is_at_work_elsewhere(early->gate, true));
    request->has_one_launch = linked_window_seize(request, is_sure, true);
    return request->has_one_launch;
}

static bool may_go_for_others(const struct turn_request *request) {
    if (linked_window_spans(request)) return true;
    bool is_of_job = linked_window_is_any(request) && arbiter_turn_job(&request->link) != 0;
    return is_of_job && clock_now() < request->arbiter_turn.returned_at + ARBITER_TURN_JOB_END_MAX;
}

/* Extends the container's turn while waiting, so that other processes of the container do not regard it as
 * abandoned. */
static bool await_arbiter_turn(struct turn_request *request, const struct early_request *early) {
    struct waiting_launch launch = {request, early};
    uint64_t until = clock_now() + ARBITER_TIMEOUT;
    while (!arbiter_turn_take(&request->arbiter_turn, &request->link)) {
        uint64_t since = clock_now();
        if (request->card) token_bucket_extend_wait(request->card, request->holder_id, since + WAITING_EXTENSION);
        bool (*is_over)(void *) = may_go_for_others(request) ? goes_for_others : NULL;
        arbiter_turn_await(&request->arbiter_turn, &request->link, is_over, &launch);
        activity_count_wait(request->activity, REGION_WAIT_TURN, clock_now() - since);
        if (request->has_one_launch) return true;
        if (arbiter_link_update(&request->link, request->uuid) != CONTENTION_ARBITRATED || clock_now() > until)
            return false;
    }
    return true;
}

/* The arbiter counts the turns of a card, so after a turn of another client the numbers have a gap. */
static void begin_arbiter_turn(struct turn_request *request, uint64_t waited) {
    bool is_handover = request->arbiter_turn.number != request->arbiter_turn.last_returned + 1;
    activity_count_turn(request->activity, is_handover);
    container_turn_seize(request, waited);
}

struct turn_limits card_turn_take(struct turn_request *request, const struct early_request *early) {
    uint32_t previous = request->arbiter_turn.number;
    uint64_t since = clock_now();
    if (!await_arbiter_turn(request, early)) return turn_limits_without_arbiter(request->share);
    if (request->has_one_launch) return turn_limits_one_launch();
    if (request->arbiter_turn.number != previous) begin_arbiter_turn(request, clock_now() - since);
    if (card_turn_is_of_job(request)) linked_window_open_for_job(request);
    if (card_turn_is_joint(request)) return turn_limits_joint(arbiter_turn_depth(&request->link));
    unsigned share = card_turn_spans(request) ? FULL_CORES : request->share;
    struct turn_limits limits =
        turn_limits_arbitrated(share, request->arbiter_turn.budget_left, arbiter_turn_depth(&request->link));
    limits.is_joint = request->arbiter_turn.is_joint;
    limits.end_by = arbiter_turn_until(&request->link);
    return limits;
}

void card_turn_resume(struct turn_request *request) {
    if (arbiter_link_contention(&request->link) != CONTENTION_ARBITRATED) return;
    uint32_t previous = request->arbiter_turn.number;
    if (!arbiter_turn_take(&request->arbiter_turn, &request->link)) {
        if (!request->arbiter_turn.is_next_requested) arbiter_turn_ask(&request->arbiter_turn, &request->link);
        return;
    }
    if (request->arbiter_turn.number != previous) begin_arbiter_turn(request, 0);
    container_turn_extend(request, clock_now() + ARBITRATION_BUSY_GRACE_NS);
}

uint64_t card_turn_free_at(const struct turn_request *request) {
    return arbiter_turn_free_at(&request->arbiter_turn, &request->link);
}

bool card_turn_is_at_hand(const struct turn_request *request) {
    bool is_held = request->arbiter_turn.number && !card_turn_is_asked_to_yield(request);
    return is_held || (!request->arbiter_turn.number && arbiter_link_turn(&request->link));
}

bool card_turn_is_held(const struct turn_request *request) { return request->arbiter_turn.number != 0; }

bool card_turn_is_joint(const struct turn_request *request) {
    return request->arbiter_turn.number && request->arbiter_turn.is_joint && request->share >= FULL_CORES;
}

bool card_turn_is_of_job(const struct turn_request *request) {
    return request->arbiter_turn.number && request->arbiter_turn.job && linked_window_is_any(request);
}

bool card_turn_spans(const struct turn_request *request) {
    return card_turn_is_of_job(request) && linked_window_spans(request);
}

bool card_turn_is_asked_to_yield(const struct turn_request *request) {
    return arbiter_turn_is_asked_to_yield(&request->arbiter_turn, &request->link);
}

void card_turn_ask_next(struct turn_request *request, uint64_t expected) {
    bool has_to_repay = request->share < FULL_CORES && linked_window_spans(request);
    bool may_ask = arbiter_link_contention(&request->link) == CONTENTION_ARBITRATED && !has_to_repay &&
                   container_turn_covers(request, expected);
    if (may_ask) arbiter_turn_ask(&request->arbiter_turn, &request->link);
}

bool card_turn_await_next(struct turn_request *request, uint64_t ns) {
    if (!request->arbiter_turn.is_next_requested && !arbiter_link_turn(&request->link)) return false;
    arbiter_link_wait(&request->link, ns);
    return arbiter_link_turn(&request->link) != 0;
}

void card_turn_note_drained(struct turn_request *request) {
    arbiter_turn_note_drained(&request->arbiter_turn, &request->link);
}
