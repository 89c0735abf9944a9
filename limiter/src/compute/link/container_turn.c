#include "compute/link/container_turn.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/link/linked_window.h"
#include "container/container.h"
#include "region/account.h"
#include "region/activity.h"
#include "region/token_bucket.h"

/* Longest wait for a turn of the container before the limits are read again. */
#define SLEEP_MAX (100 * NS_PER_MS)

/* Id of this process as holder of the container's turn. 0 = no holder. */
enum { HOLDER_WITHOUT_SLOT = 1, HOLDER_OF_FIRST_SLOT = 2 };

static uint32_t holder_id_of(int slot) {
    return slot < 0 ? HOLDER_WITHOUT_SLOT : HOLDER_OF_FIRST_SLOT + (uint32_t)slot;
}

/* The caller holds LOCK_REGION. */
static void resolve_row(struct turn_request *request) {
    struct region *region = container_region();
    int card = account_find_or_add_card(region, request->uuid);
    request->holder_id = holder_id_of(container_claim_slot(region));
    __atomic_store_n(&request->card, card < 0 ? NULL : &region->cards[card], __ATOMIC_RELAXED);
    __atomic_store_n(&request->activity, activity_of(region, request->card), __ATOMIC_RELAXED);
}

/* The arbiter has begun a turn on the job's cards, also on this one: it knows what they owe. */
static uint64_t take_given(const struct turn_request *request, uint64_t now) {
    token_bucket_seize(request->card, request->holder_id, now);
    return 0;
}

uint64_t container_turn_take(struct turn_request *request, enum contention contention) {
    struct linked_view view = {0};
    bool is_of_job = contention == CONTENTION_ARBITRATED && arbiter_turn_job(&request->link) != 0;
    bool is_alone = contention == CONTENTION_NONE && request->share < FULL_CORES;
    bool may_be_linked = request->card && (is_alone || is_of_job);
    if (may_be_linked) view = linked_turn_look(request->card);
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (region) resolve_row(request);
    bool spans = is_of_job && arbiter_turn_job_spans(&request->link);
    bool is_linked = region && request->card && (view.cards != 0 || spans);
    linked_window_note_linked(request, is_linked);
    if (!region || !request->card) return 0;
    uint64_t now = clock_now();
    if (may_be_linked)
        linked_turn_refresh(request->card);
    else if (request->share < FULL_CORES)
        linked_turn_stay_apart(request->card);
    if (request->share >= FULL_CORES) return 0;
    if (spans && arbiter_link_turn(&request->link)) return take_given(request, now);
    if (is_linked) return (is_of_job ? linked_window_await_debts : linked_window_take)(request, &view, now);
    return token_bucket_take(request->card, request->holder_id, &request->ticket, request->share, now);
}

void container_turn_sleep(const struct turn_request *request, uint32_t turns_seen, uint64_t ns) {
    uint64_t since = clock_now();
    system_futex_wait(&request->card->turns_ended, turns_seen, min_u64(ns, SLEEP_MAX), 0);
    activity_count_wait(request->activity, REGION_WAIT_SHARE, clock_now() - since);
}

uint32_t container_turn_count(const struct turn_request *request) {
    return request->card ? __atomic_load_n(&request->card->turns_ended, __ATOMIC_ACQUIRE) : 0;
}

/* The arbiter lets one process at a time use the card. If another process of the container still holds the container's
 * turn, its work is draining. */
void container_turn_seize(const struct turn_request *request, uint64_t waited) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region || !request->card) return;
    uint64_t now = clock_now();
    token_bucket_seize(request->card, request->holder_id, now);
    token_bucket_keep_earned(request->card, request->share, waited, now);
}

void container_turn_extend(struct turn_request *request, uint64_t until) {
    if (request->card) token_bucket_extend_turn(request->card, request->holder_id, until);
}

void container_turn_note_awaited(struct turn_request *request, uint64_t until) {
    if (request->card) token_bucket_note_awaited(request->card, request->holder_id, until);
}

/* Within a turn that the arbiter opens and closes for cards of several containers, a fixed share ends nothing: what the
 * turn uses is repaid before the next one. */
static bool is_in_spanning_turn(const struct turn_request *request) {
    return request->arbiter_turn.number && linked_window_spans(request);
}

bool container_turn_covers(const struct turn_request *request, uint64_t expected) {
    return request->share >= FULL_CORES || is_in_spanning_turn(request) ||
           (request->card && token_bucket_covers(request->card, expected));
}

/* Only the arbiter limits the process, and its turn goes on. Without the container's turn, `busy_until` would no longer
 * be written, and the arbiter would revoke the turn of a card that is busy. */
static bool goes_on(const struct turn_request *request) {
    return request->arbiter_turn.number && (request->share >= FULL_CORES || is_in_spanning_turn(request));
}

/* False if LOCK_REGION cannot be taken. */
static bool charge_bucket(struct turn_request *request) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region) return false;
    uint64_t cost = __atomic_exchange_n(&request->uncharged_ns, 0, __ATOMIC_RELAXED);
    token_bucket_charge(request->card, request->holder_id, request->share, cost, clock_now());
    if (goes_on(request)) token_bucket_keep_turn(request->card, request->holder_id);
    return true;
}

void container_turn_charge(struct turn_request *request, uint64_t cost) {
    if (!request->card || request->share == 0) return;
    if (request->has_one_launch) linked_window_note_for_others(request, cost);
    container_turn_charge_later(request, cost);
    if (charge_bucket(request)) system_futex_wake(&request->card->turns_ended, 1, 0);
}

void container_turn_charge_later(struct turn_request *request, uint64_t cost) {
    __atomic_fetch_add(&request->uncharged_ns, cost, __ATOMIC_RELAXED);
}

void container_turn_count_wait(const struct turn_request *request, uint64_t ns) {
    struct region_card *card = __atomic_load_n(&request->card, __ATOMIC_RELAXED);
    if (card) token_bucket_count_wait(card, ns);
}

struct region_activity *container_turn_activity(const struct turn_request *request) {
    return __atomic_load_n(&request->activity, __ATOMIC_RELAXED);
}
