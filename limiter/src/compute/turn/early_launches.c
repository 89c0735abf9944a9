#include "compute/turn/early_launches.h"

#include "common/arithmetic.h"

/* The assumed need of a launch without an estimate. */
#define UNKNOWN_NEED (5 * NS_PER_MS)

/* How long launches go on one loan: when the work has drained meanwhile, the turn is to end. */
#define LOAN_AGE (20 * NS_PER_MS)

uint64_t early_launches_need(bool is_known, uint64_t estimate) { return is_known ? estimate : UNKNOWN_NEED; }

uint64_t early_launches_take_back(struct early_launches *early) {
    uint64_t left = early->left;
    early->lent -= left;
    early->left = 0;
    return left;
}

void early_launches_lend(struct early_launches *early, uint64_t loan, unsigned launches, uint64_t expected,
                         uint64_t now) {
    if (!early->begun_at) {
        early->begun_at = now;
        early->before_ns = expected;
        early->before = launches;
    }
    early->lent += loan;
    early->left = loan;
    early->until = now + LOAN_AGE;
    early->is_loan_new = true;
}

bool early_launches_are_any(const struct early_launches *early) { return early->begun_at != 0; }

bool early_launches_fit(const struct early_launches *early, uint64_t need, uint64_t now) {
    return early->is_loan_new || (need <= early->left && now <= early->until);
}

void early_launches_add(struct early_launches *early, uint64_t need) {
    early->left = saturating_sub(early->left, need);
    early->needed += need;
    early->is_loan_new = false;
}

void early_launches_end(struct early_launches *early) {
    early->until = 0;
    early->is_loan_new = false;
}

/* The kernel that waited, and the launches before the first loan, were admitted as always. What came after them took no
 * longer than the time since the first loan. */
uint64_t early_launches_used(const struct early_launches *early, uint64_t measured, uint64_t now) {
    if (!early->begun_at) return 0;
    uint64_t since = saturating_sub(now, early->begun_at);
    return measured ? min_u64(since, saturating_sub(measured, early->before_ns)) : early->needed;
}
