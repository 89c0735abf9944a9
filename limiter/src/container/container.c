/* The mutex guards the fields below until they are set. It is never held across a call of the driver's, and never
 * waited for under the region's lock. */
#include "container/container.h"

#include <pthread.h>

#include "container/limits_source.h"
#include "main/fork.h"
#include "region/account.h"
#include "region/identity.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct source *source; /* under the mutex until set, then never changed */
static struct identity self;  /* under the mutex until `is_self_known` */
static bool is_self_known;    /* atomically, last */
static int slot_taken = -1;   /* atomically; what is there is proved each time */

void place_lock(void) { pthread_mutex_lock(&mutex); }

void place_unlock(void) { pthread_mutex_unlock(&mutex); }

void place_forget(void) {
    is_self_known = false;
    slot_taken = -1;
}

static struct source *get_source(void) {
    struct source *opened = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
    if (opened) return opened;
    place_lock();
    if (!source) {
        fork_watch();
        __atomic_store_n(&source, source_open(), __ATOMIC_RELEASE);
    }
    place_unlock();
    return source;
}

bool place_is_limited(void) { return source_is_limited(get_source()); }

/* Answers with what `limits` says, for one thread at a time. */
#define ASK(question, ...)                                                \
    do {                                                                  \
        struct source *limits = get_source();                             \
        place_lock();                                                     \
        __typeof__(question(__VA_ARGS__)) answer = question(__VA_ARGS__); \
        place_unlock();                                                   \
        return answer;                                                    \
    } while (0)

struct card_limit place_limit(const uint8_t uuid[UUID_SIZE], uint64_t now) { ASK(source_limit, limits, uuid, now); }

enum memory_policy place_memory_policy(void) { ASK(source_memory_policy, limits); }

unsigned place_share(const uint8_t uuid[UUID_SIZE]) { ASK(source_share, limits, uuid); }

bool place_has_shares(void) { ASK(source_has_shares, limits); }

struct region *place_region(void) { return source_region(get_source()); }

const char *place_arbiter(void) { return source_arbiter(get_source()); }

struct identity place_self(void) {
    if (__atomic_load_n(&is_self_known, __ATOMIC_ACQUIRE)) return self;
    place_lock();
    if (!is_self_known) {
        self = identity_self();
        __atomic_store_n(&is_self_known, true, __ATOMIC_RELEASE);
    }
    struct identity who = self;
    place_unlock();
    return who;
}

int place_slot(const struct region *region) {
    int slot = __atomic_load_n(&slot_taken, __ATOMIC_RELAXED);
    struct identity who = place_self();
    return account_owns(region, slot, &who) ? slot : -1;
}

int place_claim_slot(struct region *region) {
    int slot = place_slot(region);
    if (slot >= 0) return slot;
    struct identity who = place_self();
    slot = account_claim(region, &who);
    __atomic_store_n(&slot_taken, slot, __ATOMIC_RELAXED);
    return slot;
}
