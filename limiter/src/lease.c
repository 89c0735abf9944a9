#include "lease.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account.h"
#include "charge.h"
#include "moment.h"
#include "place.h"
#include "tokens.h"

/* The limits are looked at again at least as often. */
#define NAP_MOST (100 * TOKENS_NS_PER_MS)

static uint32_t name_of(int slot) { return slot < 0 ? 1 : (uint32_t)slot + 2; }

static bool lock(void) { return place_region() && region_lock(place_region(), CHARGE_LOCK_MS) == 0; }

/* Under the lock. */
static void find(struct lease *lease) {
    struct region *region = place_region();
    int card = account_card(region, lease->uuid);
    lease->who = name_of(place_claim_slot(region));
    lease->card = card < 0 ? NULL : &region->cards[card];
}

/* How long to wait; 0: the turn is ours, or nobody can say whose it is. */
static uint64_t try(struct lease *lease) {
    uint64_t wait = 0;
    if (!lock()) return 0;
    find(lease);
    if (lease->card) wait = tokens_take(lease->card, lease->who, &lease->ticket, lease->share, moment_now());
    region_unlock(place_region());
    return wait;
}

/* Until a turn ends, or the time is up. */
static void nap(const struct lease *lease, uint32_t turns, uint64_t ns) {
    struct timespec span = moment_span(ns < NAP_MOST ? ns : NAP_MOST);
    syscall(SYS_futex, &lease->card->turns, FUTEX_WAIT, turns, &span, NULL, 0);
}

static uint32_t turns_of(const struct lease *lease) {
    return lease->card ? __atomic_load_n(&lease->card->turns, __ATOMIC_ACQUIRE) : 0;
}

unsigned lease_take(struct lease *lease) {
    while ((lease->share = place_share(lease->uuid)) != 0) {
        uint32_t turns = turns_of(lease);
        uint64_t wait = try(lease);
        if (wait == 0) break;
        nap(lease, turns, wait);
    }
    return lease->share;
}

void lease_extend(struct lease *lease, uint64_t until) {
    if (lease->card) tokens_extend(lease->card, lease->who, until);
}

void lease_end(struct lease *lease, uint64_t cost) {
    if (!lease->card || lease->share == 0) return;
    lease->unpaid += cost;
    if (!lock()) return;
    tokens_charge(lease->card, lease->who, lease->share, lease->unpaid, moment_now());
    region_unlock(place_region());
    lease->unpaid = 0;
    syscall(SYS_futex, &lease->card->turns, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void lease_count_wait(struct lease *lease, uint64_t ns) {
    if (lease->card) tokens_count_wait(lease->card, ns);
}
