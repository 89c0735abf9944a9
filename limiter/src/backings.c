#include "backings.h"

#include <pthread.h>

#include "descriptors.h"
#include "ledger.h"

/* What a reference's `card` says in the tables of handles and mappings. */
enum sight { SEEN, UNSEEN };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger
    backings; /* under the mutex: by a number of ours; `count` is of seen references, `other` of unseen */
static struct ledger handles;  /* under the mutex: `other` is the backing's number, `count` this handle's references */
static struct ledger mappings; /* under the mutex: by address; `other` is the backing's number, `bytes` the size */
static struct ledger descriptors; /* under the mutex: `other` is the backing's number; see descriptors.h */
static uint64_t last_number;      /* under the mutex: handles come again, these do not */

void backings_lock(void) { pthread_mutex_lock(&mutex); }

void backings_unlock(void) { pthread_mutex_unlock(&mutex); }

void backings_forget_all(void) {
    ledger_clear(&backings);
    ledger_clear(&handles);
    ledger_clear(&mappings);
    ledger_clear(&descriptors);
}

/* The functions down to the next line are called under the mutex. */

static void hold(uint64_t number, enum sight sight) {
    struct ledger_entry backing = ledger_find(&backings, number);
    backing.count += sight == SEEN;
    backing.other += sight == UNSEEN;
    if (backing.key != 0) ledger_put(&backings, backing);
}

static bool is_left(const struct ledger_entry *backing) {
    return backing->count || backing->other || descriptors_are_open(&descriptors, backing->key);
}

static struct backing freed(const struct ledger_entry *backing, bool was_hidden) {
    bool is_exported = descriptors_forget(&descriptors, backing->key);
    ledger_take(&backings, backing->key);
    return (struct backing){backing->card, backing->bytes, false, was_hidden, is_exported};
}

static struct backing drop(uint64_t number, enum sight sight) {
    struct ledger_entry backing = ledger_find(&backings, number);
    if (backing.key == 0) return (struct backing){0};
    backing.count -= sight == SEEN;
    backing.other -= sight == UNSEEN;
    if (!is_left(&backing)) return freed(&backing, sight == UNSEEN);
    ledger_put(&backings, backing);
    bool is_hidden = sight == SEEN && backing.count == 0;
    return is_hidden ? (struct backing){backing.card, backing.bytes, true, false, false} : (struct backing){0};
}

/* A reference by a handle that may have some already. */
static bool add_handle(uint64_t handle, uint64_t number, enum sight sight) {
    struct ledger_entry entry = ledger_find(&handles, handle);
    uint32_t before = entry.key != 0 && entry.other == number ? entry.count : 0;
    return ledger_put(&handles, (struct ledger_entry){handle, 0, number, before + 1, (int)sight});
}

/* The mapping around an address, which need not be the mapping's first; its key is 0 where none is. */
static struct ledger_entry mapping_at(uint64_t address) {
    for (size_t i = 0; i < mappings.size; i++) {
        const struct ledger_entry *mapping = &mappings.entries[i];
        if (mapping->key != 0 && address - mapping->key < mapping->bytes) return *mapping;
    }
    return (struct ledger_entry){0};
}

static void add_reference(uint64_t handle, uint64_t number, enum sight sight) {
    if (number != 0 && add_handle(handle, number, sight)) hold(number, sight);
}

/* The functions from here on take it. */

bool backings_create(uint64_t handle, struct backing backing) {
    backings_lock();
    uint64_t number = ++last_number;
    struct ledger_entry entry = {number, backing.bytes, 0, 1, backing.card};
    bool kept = ledger_put(&backings, entry) && add_handle(handle, number, SEEN);
    if (!kept) ledger_take(&backings, number);
    backings_unlock();
    return kept;
}

void backings_retain(uint64_t handle, uint64_t address) {
    backings_lock();
    struct ledger_entry mapping = mapping_at(address);
    add_reference(handle, mapping.other, (enum sight)mapping.card);
    backings_unlock();
}

void backings_map(uint64_t address, uint64_t size, uint64_t handle) {
    backings_lock();
    struct ledger_entry by = ledger_find(&handles, handle);
    struct ledger_entry mapping = {address, size, by.other, 0, by.card};
    if (by.other != 0 && ledger_put(&mappings, mapping)) hold(by.other, (enum sight)by.card);
    backings_unlock();
}

void backings_export(uint64_t handle, int descriptor) {
    backings_lock();
    descriptors_add(&descriptors, descriptor, ledger_find(&handles, handle).other);
    backings_unlock();
}

void backings_import(uint64_t handle, int descriptor) {
    backings_lock();
    add_reference(handle, descriptors_find(&descriptors, descriptor), UNSEEN);
    backings_unlock();
}

void backings_disown(int descriptor) {
    backings_lock();
    descriptors_remove(&descriptors, descriptor);
    backings_unlock();
}

uint64_t backings_hold_again(uint64_t number) {
    backings_lock();
    hold(number, UNSEEN);
    backings_unlock();
    return number;
}

uint64_t backings_hold(uint64_t handle) {
    backings_lock();
    uint64_t number = ledger_find(&handles, handle).other;
    hold(number, UNSEEN);
    backings_unlock();
    return number;
}

uint64_t backings_hold_at(uint64_t address) {
    backings_lock();
    uint64_t number = mapping_at(address).other;
    hold(number, UNSEEN);
    backings_unlock();
    return number;
}

uint64_t backings_hold_by(int descriptor) {
    backings_lock();
    uint64_t number = descriptors_find(&descriptors, descriptor);
    hold(number, UNSEEN);
    backings_unlock();
    return number;
}

struct backing backings_drop(uint64_t number) {
    backings_lock();
    struct backing change = drop(number, UNSEEN);
    backings_unlock();
    return change;
}

struct backing backings_release(uint64_t handle) {
    backings_lock();
    struct ledger_entry entry = ledger_take(&handles, handle);
    if (entry.count > 1) {
        entry.count--;
        ledger_put(&handles, entry);
    }
    struct backing change = drop(entry.other, (enum sight)entry.card);
    backings_unlock();
    return change;
}

/* Mappings of one call follow each other without a gap; one that is unknown leaves its address to be tried no further.
 */
bool backings_unmap(uint64_t *address, uint64_t end, struct backing *change) {
    backings_lock();
    struct ledger_entry mapping = *address < end ? ledger_take(&mappings, *address) : (struct ledger_entry){0};
    if (mapping.key != 0) *change = drop(mapping.other, (enum sight)mapping.card);
    backings_unlock();
    *address += mapping.bytes;
    return mapping.key != 0;
}

bool backings_sweep(struct backing *change) {
    struct ledger_entry left = {0};
    backings_lock();
    for (size_t i = 0; descriptors.count && i < backings.size && left.key == 0; i++)
        if (backings.entries[i].key != 0 && !is_left(&backings.entries[i])) left = backings.entries[i];
    if (left.key != 0) *change = freed(&left, true);
    backings_unlock();
    return left.key != 0;
}
