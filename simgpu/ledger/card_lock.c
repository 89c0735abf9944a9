#include "ledger/card_lock.h"

#include <assert.h>
#include <time.h>

#include "hardware/clock.h"

#define OWNER_BITS    16
#define OWNER_MASK    ((UINT64_C(1) << OWNER_BITS) - 1)
#define OWNER_NO_SLOT OWNER_MASK /* a process that reads without a slot */
#define SPINS         200
#define LOST_AFTER_NS UINT64_C(100000000) /* a process that holds the lock longer is stopped */
#define LOCK_SLEEP_NS 20000

static_assert(SLOTS < OWNER_NO_SLOT, "a slot fits the lock's word");

static uint64_t own_name(void) { return own_slot >= 0 ? (uint64_t)own_slot + 1 : OWNER_NO_SLOT; }

/* Whether the lock may be taken from its holder: the holder is dead, or has held it longer than LOST_AFTER_NS, counted
 * from `since_ns`. */
static bool is_lost(uint64_t word, uint64_t since_ns) {
    uint64_t owner = word & OWNER_MASK;
    bool is_dead = owner != OWNER_NO_SLOT && !slot_is_alive((int)owner - 1);
    return is_dead || clock_now_ns() > since_ns + LOST_AFTER_NS;
}

/* Takes a lock that is free or lost, unless its word has changed. */
static bool take(struct card_time *card, uint64_t word) {
    uint64_t mine = (word & ~OWNER_MASK) | own_name();
    return __atomic_compare_exchange_n(&card->lock, &word, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void sleep_until_taken(struct card_time *card) {
    static const struct timespec nap = {.tv_nsec = LOCK_SLEEP_NS};
    uint64_t since_ns = clock_now_ns();
    uint64_t seen = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t word = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
        if (word != seen) {
            seen = word;
            since_ns = clock_now_ns();
        }
        bool is_free = (word & OWNER_MASK) == 0 || is_lost(word, since_ns);
        if (is_free && take(card, word)) return;
        nanosleep(&nap, NULL);
    }
}

void card_lock(struct card_time *card) {
    for (int i = 0; i < SPINS; i++) {
        uint64_t word = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
        if ((word & OWNER_MASK) == 0 && take(card, word)) return;
        __builtin_ia32_pause();
    }
    sleep_until_taken(card);
}

/* Does nothing for a process that lost the lock while it was stopped. */
void card_unlock(struct card_time *card) {
    uint64_t word = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
    if ((word & OWNER_MASK) == own_name()) {
        uint64_t next = (word & ~OWNER_MASK) + OWNER_MASK + 1;
        __atomic_compare_exchange_n(&card->lock, &word, next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}
