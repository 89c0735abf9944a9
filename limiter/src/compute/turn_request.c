#include "compute/turn_request.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "charge/charge.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "container/container.h"
#include "region/account.h"
#include "region/token_bucket.h"

/* The limits are looked at again at least as often. */
#define NAP_MOST (100 * NS_PER_MS)

/* Who waits for the arbiter keeps the container's turn from one look to the next. */
#define WAITING (50 * NS_PER_MS)

/* A turn that does not come in this time, though the arbiter lives, is taken. */
#define PATIENCE (5000 * NS_PER_MS)

static uint32_t name_of(int slot) { return slot < 0 ? 1 : (uint32_t)slot + 2; }

static bool lock(void) { return place_region() && region_lock(place_region(), CHARGE_LOCK_MS) == 0; }

/* Under the lock. */
static void find(struct lease *lease) {
    struct region *region = place_region();
    int card = account_card(region, lease->uuid);
    lease->who = name_of(place_claim_slot(region));
    lease->card = card < 0 ? NULL : &region->cards[card];
}

bool lease_is_needed(const struct lease *lease, bool is_shared) { return is_shared || link_is_contended(&lease->link); }

/* Without turns nobody would see that the card is used. */
static void show_use(const struct lease *lease) {
    struct region *region = place_region();
    charge_join(lease->uuid);
    int card = region ? account_find_card(region, lease->uuid) : -1;
    if (card >= 0) tokens_show(&region->cards[card], moment_now() + ARBITRATION_GRACE_NS);
}

void lease_look(struct lease *lease) {
    link_look(&lease->link, lease->uuid);
    if (link_is_up(&lease->link)) show_use(lease);
}

static unsigned share_of(const struct lease *lease, enum standing standing) {
    unsigned own = place_share(lease->uuid);
    if (own || standing == STANDING_ALONE) return own;
    return standing == STANDING_CONTENDED ? FULL_CORES : terms_fallback(link_page(&lease->link));
}

/* How long to wait; 0: the container's turn is ours, or nobody can say whose it is. */
static uint64_t try(struct lease *lease) {
    uint64_t wait = 0;
    if (!lock()) return 0;
    find(lease);
    bool is_held = lease->card && lease->share < FULL_CORES;
    if (is_held) wait = tokens_take(lease->card, lease->who, &lease->ticket, lease->share, moment_now());
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

bool lease_is_called_back(const struct lease *lease) { return grant_is_called_back(&lease->grant, &lease->link); }

uint64_t lease_free_at(const struct lease *lease) { return grant_free_at(&lease->grant, &lease->link); }

/* The arbiter has one process on the card at a time: what another one of the container has left there is being drained.
 */
static void seize(const struct lease *lease) {
    if (!lock()) return;
    if (lease->card) tokens_seize(lease->card, lease->who, moment_now());
    region_unlock(place_region());
}

/* Those who wait for the container's turn see that it is not left alone. */
static bool await_grant(struct lease *lease) {
    uint64_t until = moment_now() + PATIENCE;
    while (!grant_take(&lease->grant, &lease->link)) {
        lease_extend(lease, moment_now() + WAITING);
        grant_await(&lease->grant, &lease->link);
        if (link_look(&lease->link, lease->uuid) != STANDING_CONTENDED || moment_now() > until) return false;
    }
    return true;
}

static struct terms arbitrated(struct lease *lease) {
    uint32_t before = lease->grant.turn;
    if (!await_grant(lease)) return terms_away(lease->share);
    if (lease->grant.turn != before) seize(lease);
    struct terms terms = terms_granted(lease->share, lease->grant.left, grant_depth(&lease->link));
    terms.until = grant_until(&lease->link);
    return terms;
}

static struct terms agree(struct lease *lease, enum standing standing) {
    if (standing == STANDING_CONTENDED) return arbitrated(lease);
    grant_give_back(&lease->grant, &lease->link, 0);
    return standing == STANDING_AWAY ? terms_away(lease->share) : terms_alone(lease->share);
}

struct terms lease_take(struct lease *lease) {
    enum standing standing = link_look(&lease->link, lease->uuid);
    while ((lease->share = share_of(lease, standing)) != 0) {
        uint32_t turns = turns_of(lease);
        uint64_t wait = try(lease);
        if (wait == 0) break;
        grant_give_back_all(&lease->grant, &lease->link);
        nap(lease, turns, wait);
        standing = link_look(&lease->link, lease->uuid);
    }
    return agree(lease, standing);
}

void lease_extend(struct lease *lease, uint64_t until) {
    if (lease->card) tokens_extend(lease->card, lease->who, until);
}

static bool has_tokens(const struct lease *lease, uint64_t expected) {
    return lease->share >= FULL_CORES || (lease->card && tokens_suffice(lease->card, expected));
}

bool lease_is_endless(const struct lease *lease, uint64_t expected) {
    return lease->grant.left == UINT64_MAX && has_tokens(lease, expected);
}

void lease_stop(struct lease *lease, uint64_t rest) { grant_give_back(&lease->grant, &lease->link, rest); }

void lease_ask(struct lease *lease, uint64_t expected) {
    bool is_due = link_standing(&lease->link) == STANDING_CONTENDED && has_tokens(lease, expected);
    if (is_due) grant_ask(&lease->grant, &lease->link);
}

void lease_end(struct lease *lease, uint64_t cost) {
    grant_spend(&lease->grant, &lease->link, cost);
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
