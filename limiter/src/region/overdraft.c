#include "region/overdraft.h"

/* The most that is owed to the meter, and the longest time that counts as time without a loan: the region's content is
 * not trusted. A meter never holds more than a full one. */
#define OWED_MAX    (10000 * (int64_t)NS_PER_MS)
#define PASSED_MAX  (1000 * NS_PER_SECOND)
#define PER_SECOND  (NS_PER_SECOND / OVERDRAFT_MAX)
#define CAPACITY_NS ((int64_t)OVERDRAFT_MAX)

/* A meter of zeros is full. `overdraft_used`: what is missing to a full one. */
static void recover(struct region_card *card, uint64_t now) {
    uint64_t passed = min_u64(saturating_sub(now, card->overdraft_at), PASSED_MAX);
    int64_t used = max_i64(min_i64(card->overdraft_used, OWED_MAX), 0);
    card->overdraft_used = max_i64(used - (int64_t)(passed / PER_SECOND), 0);
    card->overdraft_at = now;
}

uint64_t overdraft_lend(struct region_card *card, uint64_t need, bool is_urgent, uint64_t now) {
    recover(card, now);
    uint64_t left = (uint64_t)max_i64(CAPACITY_NS - card->overdraft_used, 0);
    uint64_t least = is_urgent ? min_u64(need, OVERDRAFT_MAX) : need;
    if (left < least || left == 0) return 0;
    uint64_t loan = min_u64(left, max_u64(least, OVERDRAFT_LOAN_MAX));
    card->overdraft_used += (int64_t)loan;
    return loan;
}

void overdraft_return(struct region_card *card, uint64_t lent, uint64_t used, uint64_t now) {
    recover(card, now);
    int64_t more = (int64_t)min_u64(used, (uint64_t)OWED_MAX) - (int64_t)min_u64(lent, (uint64_t)OWED_MAX);
    card->overdraft_used = max_i64(min_i64(card->overdraft_used + more, OWED_MAX), 0);
}

bool overdraft_is_repaid(const struct region_card *card) { return card->tokens > -CAPACITY_NS; }
