/* The process's own mutex guards the fields below; the region's lock guards the region. Neither is held across a call
 * of the driver's, and the own one is never waited for under the region's. */
#include "charge.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "account.h"
#include "backings.h"
#include "holdings.h"
#include "identity.h"
#include "log.h"
#include "source.h"

/* How long a reservation waits for a holder that is stopped; then it is refused. */
enum { LOCK_TIMEOUT_MS = 50 };

/* How long the view may show what a dead process held; a reservation that would be refused looks at once. */
enum { REAP_EVERY_MS = 100 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct source *source;          /* under the mutex until set, then never changed */
static struct identity self;           /* under the mutex; pid 0 until known */
static uint64_t put_off[REGION_CARDS]; /* atomically: releases that wait for the lock */

static void before_fork(void) {
    pthread_mutex_lock(&mutex);
    holdings_lock();
    backings_lock();
}

static void after_fork_in_parent(void) {
    backings_unlock();
    holdings_unlock();
    pthread_mutex_unlock(&mutex);
}

/* The child holds no memory of the card: CUDA does not survive a fork. */
static void after_fork_in_child(void) {
    self = (struct identity){0};
    memset(put_off, 0, sizeof put_off);
    backings_forget_all();
    backings_unlock();
    holdings_forget_all();
    holdings_unlock();
    pthread_mutex_unlock(&mutex);
}

static struct source *get_source(void) {
    struct source *known = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
    if (known) return known;
    pthread_mutex_lock(&mutex);
    if (!source) {
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        __atomic_store_n(&source, source_open(), __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
    return source;
}

static struct identity get_self(void) {
    pthread_mutex_lock(&mutex);
    if (self.pid == 0) self = identity_self();
    struct identity known = self;
    pthread_mutex_unlock(&mutex);
    return known;
}

bool charge_is_limited(void) { return source_is_limited(get_source()); }

uint64_t charge_limit(const uint8_t uuid[UUID_SIZE]) {
    struct source *limits = get_source();
    pthread_mutex_lock(&mutex);
    uint64_t limit = source_limit(limits, uuid).memory;
    pthread_mutex_unlock(&mutex);
    return limit;
}

/* Whether the last look for dead processes is long enough ago; the first who asks is the one to look. */
static bool is_reaping_due(void) {
    static uint64_t due_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    uint64_t due = __atomic_load_n(&due_ms, __ATOMIC_RELAXED);
    return now_ms >= due && __atomic_compare_exchange_n(&due_ms, &due, now_ms + REAP_EVERY_MS, false, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED);
}

/* The region as the view shows it, or NULL. */
static struct region *reaped_region(void) {
    struct region *region = source_region(get_source());
    if (region && is_reaping_due()) {
        struct identity who = get_self();
        identity_reap(region, &who, LOCK_TIMEOUT_MS);
    }
    return region;
}

uint64_t charge_used(const uint8_t uuid[UUID_SIZE]) {
    struct region *region = reaped_region();
    return region ? account_used(region, account_find_card(region, uuid)) : 0;
}

bool charge_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes) {
    struct region *region = reaped_region();
    return region && account_of_process(region, pid, get_self().namespace, account_find_card(region, uuid), bytes);
}

/* Under the region's lock. */
static void catch_up(struct region *region, int slot) {
    for (int card = 0; card < REGION_CARDS; card++)
        if (__atomic_load_n(&put_off[card], __ATOMIC_RELAXED) != 0)
            account_release(region, slot, card, __atomic_exchange_n(&put_off[card], 0, __ATOMIC_RELAXED));
}

static bool try_reserve(struct region *region, const struct identity *who, const uint8_t uuid[UUID_SIZE],
                        struct claim *claim, uint64_t limit) {
    if (region_lock(region, LOCK_TIMEOUT_MS) != 0) return false;
    int slot = account_claim(region, who);
    claim->card = account_card(region, uuid);
    if (slot >= 0) catch_up(region, slot);
    bool reserved = account_reserve(region, slot, claim->card, claim->bytes, limit);
    region_unlock(region);
    return reserved;
}

static bool reserve(const uint8_t uuid[UUID_SIZE], uint64_t limit, struct claim *claim) {
    struct region *region = source_region(get_source());
    if (!region) return false;
    struct identity who = get_self();
    if (try_reserve(region, &who, uuid, claim, limit)) return true;
    claim->reaped = identity_reap(region, &who, LOCK_TIMEOUT_MS) > 0;
    return claim->reaped && try_reserve(region, &who, uuid, claim, limit);
}

bool charge_reserve(const char *what, const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct claim *claim) {
    uint64_t limit = charge_limit(uuid);
    *claim = (struct claim){.card = -1, .bytes = bytes};
    if (reserve(uuid, limit, claim)) return true;
    log_warn("%s refused: %llu bytes asked, %llu used, limit %llu", what, (unsigned long long)bytes,
             (unsigned long long)charge_used(uuid), (unsigned long long)limit);
    return false;
}

void charge_release(int card, uint64_t bytes) {
    struct region *region = source_region(get_source());
    if (!region || card < 0 || card >= REGION_CARDS) return;
    struct identity who = get_self();
    __atomic_fetch_add(&put_off[card], bytes, __ATOMIC_RELAXED);
    if (region_lock(region, LOCK_TIMEOUT_MS) != 0) return;
    int slot = account_slot_of(region, &who);
    if (slot >= 0) catch_up(region, slot);
    region_unlock(region);
}

void charge_clear_former_image(void) {
    struct region *region = source_open_region();
    if (!region) return;
    if (region->header.slots_high != 0) {
        struct identity who = identity_self();
        int slot = account_slot_of(region, &who);
        if (slot >= 0 && region_lock(region, LOCK_TIMEOUT_MS) == 0) {
            account_clear(region, slot);
            region_unlock(region);
        }
    }
    region_close(region);
}
