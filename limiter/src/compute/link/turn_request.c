#include "compute/link/turn_request.h"

#include "common/clock.h"
#include "compute/link/arbiter_link.h"
#include "compute/link/card_turn.h"
#include "compute/link/container_turn.h"
#include "container/container.h"
#include "region/account.h"
#include "region/token_bucket.h"

bool turn_request_is_needed(const struct turn_request *request, bool has_share) {
    return has_share || arbiter_link_is_contended(&request->link);
}

/* Tells the arbiter, by `busy_until` in the region, that this process uses the card. Turns write it otherwise, but this
 * process may need none. */
static void show_use(const struct turn_request *request) {
    struct region *region = container_region();
    container_join(request->uuid);
    int card = region ? account_find_card(region, request->uuid) : -1;
    if (card >= 0) token_bucket_mark_used(&region->cards[card], clock_now() + ARBITRATION_BUSY_GRACE_NS);
}

void turn_request_update(struct turn_request *request) {
    arbiter_link_update(&request->link, request->uuid);
    if (arbiter_link_is_up(&request->link)) show_use(request);
}

static unsigned share_of(const struct turn_request *request, enum contention contention) {
    unsigned own = container_share(request->uuid);
    if (own || contention == CONTENTION_NONE) return own;
    return contention == CONTENTION_ARBITRATED ? FULL_CORES : turn_limits_fallback(arbiter_link_page(&request->link));
}

static struct turn_limits limits_for(struct turn_request *request, const struct early_request *early,
                                     enum contention contention) {
    if (request->has_one_launch) return turn_limits_one_launch();
    if (contention == CONTENTION_ARBITRATED) return card_turn_take(request, early);
    arbiter_turn_give_back(&request->arbiter_turn, &request->link, 0, false);
    return contention == CONTENTION_UNARBITRATED ? turn_limits_without_arbiter(request->share)
                                                 : turn_limits_alone(request->share);
}

struct turn_limits turn_request_take(struct turn_request *request, struct early_request *early) {
    uint64_t since = clock_now();
    enum contention contention = arbiter_link_update(&request->link, request->uuid);
    request->is_in_window = request->has_one_launch = false;
    while ((request->share = share_of(request, contention)) != 0) {
        uint32_t turns_seen = container_turn_count(request);
        uint64_t wait = container_turn_take(request, contention);
        if (wait == 0) break;
        arbiter_turn_give_back_all(&request->arbiter_turn, &request->link);
        if (early_start_try(request, early, since)) break;
        container_turn_sleep(request, turns_seen, early_start_retry_in(request, early, since, wait));
        contention = arbiter_link_update(&request->link, request->uuid);
    }
    return limits_for(request, early, contention);
}

bool turn_request_is_unbounded(const struct turn_request *request, uint64_t expected) {
    return request->arbiter_turn.budget_left == UINT64_MAX && container_turn_covers(request, expected);
}

/* The region says when the work drains, because the arbiter may receive the message late. */
void turn_request_give_back(struct turn_request *request, uint64_t rest, bool is_awaited) {
    container_turn_extend(request, clock_now() + rest + ARBITRATION_BUSY_GRACE_NS);
    arbiter_turn_give_back(&request->arbiter_turn, &request->link, rest, is_awaited);
}

void turn_request_end(struct turn_request *request, uint64_t cost) {
    arbiter_turn_spend(&request->arbiter_turn, &request->link, cost);
    container_turn_charge(request, cost);
}
