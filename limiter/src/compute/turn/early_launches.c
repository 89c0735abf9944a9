#include "compute/turn/early_launches.h"

#include "common/arithmetic.h"

/* The least need of a launch without an estimate, and the most that is assumed: some kernels can always be lent. */
#define UNKNOWN_NEED (5 * NS_PER_MS)
#define ASSUMED_MAX  (20 * NS_PER_MS)

/* The need of a launch without an estimate of the kind that is on the card already: a full overdraft. Of a program that
 * launches one kernel of seconds again and again, all that it keeps in flight would else go at once. */
#define LIKE_FIRST_NEED (50 * NS_PER_MS)

enum { FORGET_DIVISOR = 4 }; /* each shorter launch lowers what is assumed by this part */

/* How long launches go on one loan: when the work has drained meanwhile, the turn is to end. */
#define LOAN_AGE (20 * NS_PER_MS)

uint64_t early_launches_need(const struct early_launches *early, bool is_known, uint64_t estimate) {
    uint64_t least = early->is_like_first ? LIKE_FIRST_NEED : UNKNOWN_NEED;
    return is_known ? estimate : max_u64(max_u64(least, early->assumed_ns), early->longest_ns);
}

uint64_t early_launches_assume(uint64_t before, uint64_t ns) {
    return min_u64(max_u64(ns, before - before / FORGET_DIVISOR), ASSUMED_MAX);
}

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
        early->is_before_over = launches == 0;
    }
    early->lent += loan;
    early->left = loan;
    early->until = now + LOAN_AGE;
    early->is_loan_new = true;
}

bool early_launches_are_any(const struct early_launches *early) { return early->begun_at != 0; }

bool early_launches_may_be_awaited(const struct early_launches *early) {
    return early_launches_are_any(early) && !early->is_before_over;
}

bool early_launches_fit(const struct early_launches *early, bool is_known, uint64_t estimate, uint64_t now) {
    return early->is_loan_new || (early_launches_need(early, is_known, estimate) <= early->left && now <= early->until);
}

void early_launches_add(struct early_launches *early, bool is_known, uint64_t estimate) {
    early->left = saturating_sub(early->left, early_launches_need(early, is_known, estimate));
    early->known_ns += is_known ? estimate : 0;
    early->unknown += !is_known;
    early->is_loan_new = false;
}

void early_launches_note_sample(struct early_launches *early, uint64_t ns) {
    early->longest_ns = max_u64(early->longest_ns, ns);
}

void early_launches_end(struct early_launches *early) {
    early->until = 0;
    early->is_loan_new = false;
}

void early_launches_note_timed(struct early_launches *early, uint64_t ns) { early->timed_ns = ns; }

void early_launches_note_before(struct early_launches *early, uint64_t took) {
    early->is_before_over = true;
    early->before_ns = max_u64(took, early->timed_ns);
}

static uint64_t at(const struct early_launches *early, uint64_t unknown_ns) {
    return early->known_ns + early->unknown * unknown_ns;
}

/* Of a launch without an estimate, the longest that was timed lately counts. What passes meanwhile belongs to others
 * too, and a turn may go on for long: of eight programs that began at the same moment, each was charged for all. */
uint64_t early_launches_cost(const struct early_launches *early, uint64_t measured) {
    if (!early->is_beside || !early->is_before_over) return measured;
    uint64_t unknown = max_u64(early->longest_ns, early->assumed_ns);
    return min_u64(measured, early->before_ns + at(early, unknown ? unknown : UNKNOWN_NEED));
}

uint64_t early_launches_lend_used(struct early_launches *early, uint64_t now) {
    uint64_t used = early->longest_ns ? at(early, early->longest_ns) : early->known_ns;
    uint64_t more = saturating_sub(min_u64(used, saturating_sub(now, early->begun_at)), early->lent);
    early->lent += more;
    return more;
}

/* Estimates are right on average. What none is known of took no longer than the longest that was timed; without one, no
 * longer than the time since the first loan, nor than the turn without the launches before. */
uint64_t early_launches_used(const struct early_launches *early, uint64_t measured, uint64_t now) {
    if (!early->begun_at) return 0;
    bool is_any_timed = early->unknown == 0 || early->longest_ns;
    uint64_t by_estimates = at(early, is_any_timed ? early->longest_ns : max_u64(UNKNOWN_NEED, early->assumed_ns));
    if (!measured) return by_estimates;
    uint64_t by_time = min_u64(saturating_sub(now, early->begun_at), saturating_sub(measured, early->before_ns));
    return is_any_timed ? min_u64(by_time, by_estimates) : by_time;
}
