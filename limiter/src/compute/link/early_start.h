/* Launches that go before the share pays for them, because a kernel on another card may wait for them: on a loan of the
 * overdraft (region/overdraft.h), or on a linked card as a turn of one launch (linked_window.h). */
#ifndef VGPU_COMPUTE_LINK_EARLY_START_H
#define VGPU_COMPUTE_LINK_EARLY_START_H

#include "compute/link/request_state.h"

/* A launch that waits for a turn while its process may have work on a card that waits for it. */
struct early_request {
    uint64_t need; /* GPU time of the launch */
    unsigned gate; /* index of the gate that it waits at */
    bool (*is_work_elsewhere)(unsigned gate);
    bool (*is_at_work_elsewhere)(unsigned gate, bool is_late); /* the driver says so; `is_late`: work that should have
                                                                  ended */
    uint64_t loan; /* out: GPU time that is lent to the launch, which has no turn; 0 = it has one */
};

/* Whether the launch, which has waited for tokens since `since`, goes now: `early->loan` says on what, or the turn is
 * for one launch. NULL: never. Takes LOCK_REGION. */
bool early_start_try(struct turn_request *request, struct early_request *early, uint64_t since);

/* How long to wait before early_start_try is called again: `wait` ns at most. */
uint64_t early_start_retry_in(const struct turn_request *request, const struct early_request *early, uint64_t since,
                              uint64_t wait);

/* Lends GPU time of the overdraft for a launch that needs `need` ns; 0 = there is not enough. `is_urgent`: a full
 * overdraft is enough. Takes LOCK_REGION; if that fails, the launch is delayed no longer. */
uint64_t early_start_borrow(struct turn_request *request, uint64_t need, bool is_urgent);

/* Ends loans of `lent` ns together, of which `used` were used. Takes LOCK_REGION. */
void early_start_return_loan(const struct turn_request *request, uint64_t lent, uint64_t used);

#endif
