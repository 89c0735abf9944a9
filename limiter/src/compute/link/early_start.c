#include "compute/link/early_start.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/link/linked_window.h"
#include "container/container.h"
#include "region/overdraft.h"

/* How long a launch waits for tokens before it goes early, if there is work elsewhere, and how often it asks for that
 * again. */
#define EARLY_AFTER (2 * NS_PER_MS)
#define EARLY_RETRY (1 * NS_PER_MS)

/* Likewise on a linked card, while another one has work, and while it has work that should have ended; how soon it is
 * seen then that there is such work, and that another card has opened. */
#define LINKED_AFTER (1000 * NS_PER_US)
#define LATE_AFTER   (100 * NS_PER_US)
#define LATE_RETRY   (100 * NS_PER_US)
#define LINKED_RETRY (500 * NS_PER_US)

uint64_t early_start_borrow(struct turn_request *request, uint64_t need, bool is_urgent) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region || !request->card) return OVERDRAFT_LOAN_MAX;
    return overdraft_lend(request->card, need, is_urgent, clock_now());
}

void early_start_return_loan(const struct turn_request *request, uint64_t lent, uint64_t used) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (region && request->card) overdraft_return(request->card, lent, used, clock_now());
}

/* Without a turn, the loan is repaid before the next one: the debt may be no larger. */
static uint64_t borrow_without_turn(struct turn_request *request, uint64_t need) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region || !request->card || !overdraft_is_repaid(request->card)) return 0;
    return overdraft_lend(request->card, need, false, clock_now());
}

/* One launch at a time, which may be the collective that another card waits for: if it were held back, what that one
 * spins would be charged. */
static bool goes_for_others(struct turn_request *request, const struct early_request *early, uint64_t since) {
    uint64_t waited = clock_now() - since;
    bool is_late = waited < LINKED_AFTER;
    if (waited < LATE_AFTER) return false;
    bool is_sure = early->is_at_work_elsewhere(early->gate, is_late) || linked_window_is_awaited_elsewhere(request);
    request->has_one_launch = linked_window_seize(request, is_sure, is_late);
    return request->has_one_launch;
}

bool early_start_try(struct turn_request *request, struct early_request *early, uint64_t since) {
    if (!early) return false;
    if (linked_window_is_any(request)) return goes_for_others(request, early, since);
    if (clock_now() < since + EARLY_AFTER || !early->is_work_elsewhere(early->gate)) return false;
    early->loan = borrow_without_turn(request, early->need);
    return early->loan != 0;
}

uint64_t early_start_retry_in(const struct turn_request *request, const struct early_request *early, uint64_t since,
                              uint64_t wait) {
    bool is_work_elsewhere = early && early->is_work_elsewhere(early->gate);
    if (linked_window_is_any(request)) return min_u64(wait, is_work_elsewhere ? LATE_RETRY : LINKED_RETRY);
    if (!is_work_elsewhere) return wait;
    uint64_t due = since + EARLY_AFTER;
    return min_u64(wait, max_u64(EARLY_RETRY, saturating_sub(due, clock_now())));
}
