#include "container/container.h"

#include "common/clock.h"
#include "container/limits_source.h"
#include "process/fork.h"
#include "process/lock.h"
#include "region/account.h"
#include "region/identity.h"
#include "region/slot_locks.h"

/* Atomic; set once, under LOCK_CONTAINER. LOCK_CONTAINER also guards what it points to. */
static struct limits_source *source;
static struct identity self;        /* written under LOCK_CONTAINER, before `is_self_known` */
static bool is_self_known;          /* atomic, stored with release order: `self` is valid */
static uint64_t space_client_since; /* atomic; 0 = the process is no client */
static int cached_slot = -1;        /* atomic; a hint: the slot's identity is compared at each use */

static void forget(void) {
    is_self_known = false;
    cached_slot = -1;
    space_client_since = 0;
}
FORGET_IN_CHILD(forget);

static struct limits_source *get_source(void) {
    struct limits_source *opened = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
    if (opened) return opened;
    HOLD_LOCK(LOCK_CONTAINER);
    if (!source) {
        fork_install_handlers();
        __atomic_store_n(&source, limits_source_open(), __ATOMIC_RELEASE);
    }
    return source;
}

bool container_is_limited(void) { return limits_source_is_limited(get_source()); }

struct card_limit container_limit(const uint8_t uuid[UUID_SIZE], uint64_t now) {
    struct limits_source *limits = get_source();
    HOLD_LOCK(LOCK_CONTAINER);
    return limits_source_limit(limits, uuid, now);
}

uint64_t container_memory_limit(const uint8_t uuid[UUID_SIZE]) { return container_limit(uuid, clock_ticks()).memory; }

uint64_t container_newest_memory_limit(const uint8_t uuid[UUID_SIZE]) {
    struct limits_source *limits = get_source();
    HOLD_LOCK(LOCK_CONTAINER);
    limits_source_look(limits);
    return limits_source_limit(limits, uuid, clock_ticks()).memory;
}

enum memory_policy container_memory_policy(void) {
    struct limits_source *limits = get_source();
    HOLD_LOCK(LOCK_CONTAINER);
    return limits_source_memory_policy(limits);
}

unsigned container_share(const uint8_t uuid[UUID_SIZE]) {
    struct limits_source *limits = get_source();
    HOLD_LOCK(LOCK_CONTAINER);
    return limits_source_share(limits, uuid);
}

bool container_has_shares(void) {
    struct limits_source *limits = get_source();
    HOLD_LOCK(LOCK_CONTAINER);
    return limits_source_has_shares(limits);
}

struct region *container_region(void) { return limits_source_region(get_source()); }

const char *container_arbiter_socket(void) { return limits_source_arbiter_socket(get_source()); }

struct space_limits container_space(void) {
    struct limits_source *limits = get_source();
    HOLD_LOCK(LOCK_CONTAINER);
    return limits_source_space(limits);
}

bool container_is_space_client(void) { return container_space_client_since() != 0; }

uint64_t container_space_client_since(void) { return __atomic_load_n(&space_client_since, __ATOMIC_RELAXED); }

void container_note_space_client(void) { __atomic_store_n(&space_client_since, clock_now(), __ATOMIC_RELAXED); }

bool container_has_managed_memory(void) { return !container_is_limited() || !container_space().directory; }

struct identity container_self(void) {
    if (__atomic_load_n(&is_self_known, __ATOMIC_ACQUIRE)) return self;
    HOLD_LOCK(LOCK_CONTAINER);
    if (!is_self_known) {
        self = identity_self();
        slot_locks_open(); /* here, because it must not take long under the region's lock */
        __atomic_store_n(&is_self_known, true, __ATOMIC_RELEASE);
    }
    return self;
}

int container_slot(const struct region *region) {
    int slot = __atomic_load_n(&cached_slot, __ATOMIC_RELAXED);
    struct identity process = container_self();
    return account_owns(region, slot, &process) ? slot : -1;
}

int container_claim_slot(struct region *region) {
    int slot = container_slot(region);
    if (slot >= 0) return slot;
    struct identity process = container_self();
    slot = account_slot_to_claim(region, &process);
    bool is_ours = account_owns(region, slot, &process); /* claimed by a copy of this library (driver/loading.c) */
    account_note_lock(region, slot, slot_locks_take(slot) || (is_ours && account_has_lock(region, slot)));
    account_note_image(region, slot, identity_image());
    slot = account_claim_slot(region, &process);
    __atomic_store_n(&cached_slot, slot, __ATOMIC_RELAXED);
    return slot;
}

void container_join(const uint8_t uuid[UUID_SIZE]) {
    struct region *region = container_region();
    if (!region || (container_slot(region) >= 0 && account_find_card(region, uuid) >= 0)) return;
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    if (!locked) return;
    container_claim_slot(locked);
    account_find_or_add_card(locked, uuid);
}

static void clear_former_image(struct region *region) {
    if (account_slots(region) == 0) return;
    struct identity process = identity_self();
    int slot = account_slot_of(region, &process);
    if (slot < 0 || account_image(region, slot) == identity_image()) return;
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    if (locked) account_clear_slot(locked, slot);
}

void container_clear_former_image(void) {
    struct region *region = limits_source_open_region();
    if (!region) return;
    clear_former_image(region);
    region_close(region);
}
