#include "backings.h"

#include <pthread.h>

#include "descriptors.h"
#include "ledger.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger backings;          /* under the mutex: by a number of ours; `other` says whether it is hidden */
static struct ledger references[SORTS]; /* under the mutex: by the backing's number, `count` of them */
static struct ledger
    handles; /* under the mutex: `other` is the number, `count` this handle's references, `card` their sort */
static struct ledger
    mappings; /* under the mutex: by address; `other` is the number, `bytes` the size, `card` the sort */
static struct ledger descriptors; /* under the mutex: see descriptors.h */
static uint64_t last_number;      /* under the mutex: handles come again, these do not */

void backings_lock(void) { pthread_mutex_lock(&mutex); }

void backings_unlock(void) { pthread_mutex_unlock(&mutex); }

void backings_forget_all(void) {
    ledger_clear(&backings);
    for (int sort = 0; sort < SORTS; sort++) ledger_clear(&references[sort]);
    ledger_clear(&handles);
    ledger_clear(&mappings);
    descriptors_forget_all(&descriptors);
}

/* The functions down to the next line are called under the mutex. */

static uint32_t count_of(uint64_t number, enum sort sort) { return ledger_find(&references[sort], number).count; }

static void count(uint64_t number, enum sort sort, uint32_t more) {
    struct ledger_entry entry = {.key = number, .count = count_of(number, sort) + more};
    if (entry.count != 0)
        ledger_put(&references[sort], entry);
    else
        ledger_take(&references[sort], number);
}

static void hold(uint64_t number, enum sort sort) {
    if (ledger_find(&backings, number).key != 0) count(number, sort, 1);
}

static struct backing freed(const struct ledger_entry *backing) {
    bool is_exported = descriptors_forget(&descriptors, backing->key);
    ledger_take(&backings, backing->key);
    return (struct backing){backing->card, backing->bytes, FREED, backing->other != 0, is_exported};
}

/* What has changed since it was looked at last. */
static struct backing look(uint64_t number) {
    struct ledger_entry backing = ledger_find(&backings, number);
    if (backing.key == 0 || (backing.other == 0 && count_of(number, MADE))) return (struct backing){0};
    bool is_open = descriptors_are_open(&descriptors, number);
    bool is_imported = count_of(number, IMPORTED) != 0;
    if (!is_open && !is_imported && !count_of(number, MADE) && !count_of(number, UNSEEN)) return freed(&backing);
    bool is_hidden = !count_of(number, MADE) && (is_open || !is_imported);
    if (is_hidden == (backing.other != 0)) return (struct backing){0};
    backing.other = is_hidden;
    ledger_put(&backings, backing);
    return (struct backing){backing.card, backing.bytes, is_hidden ? HIDDEN : SHOWN, false, false};
}

static struct backing drop(uint64_t number, enum sort sort) {
    if (count_of(number, sort)) count(number, sort, (uint32_t)-1);
    return look(number);
}

/* A reference by a handle that may have some already. */
static bool add_handle(uint64_t handle, uint64_t number, enum sort sort) {
    struct ledger_entry entry = ledger_find(&handles, handle);
    uint32_t before = entry.key != 0 && entry.other == number ? entry.count : 0;
    return ledger_put(&handles, (struct ledger_entry){handle, 0, number, before + 1, (int)sort});
}

/* The mapping around an address, which need not be the mapping's first; its key is 0 where none is. */
static struct ledger_entry mapping_at(uint64_t address) {
    for (size_t i = 0; i < mappings.size; i++) {
        const struct ledger_entry *mapping = &mappings.entries[i];
        if (mapping->key != 0 && address - mapping->key < mapping->bytes) return *mapping;
    }
    return (struct ledger_entry){0};
}

static void add_reference(uint64_t handle, uint64_t number, enum sort sort) {
    if (number != 0 && add_handle(handle, number, sort)) hold(number, sort);
}

/* The functions from here on take it. */

bool backings_create(uint64_t handle, struct backing backing) {
    backings_lock();
    uint64_t number = ++last_number;
    struct ledger_entry entry = {number, backing.bytes, 0, 0, backing.card};
    bool kept = ledger_put(&backings, entry) && add_handle(handle, number, MADE);
    if (kept)
        hold(number, MADE);
    else
        ledger_take(&backings, number);
    backings_unlock();
    return kept;
}

void backings_retain(uint64_t handle, uint64_t address) {
    backings_lock();
    struct ledger_entry mapping = mapping_at(address);
    add_reference(handle, mapping.other, (enum sort)mapping.card);
    backings_unlock();
}

void backings_map(uint64_t address, uint64_t size, uint64_t handle) {
    backings_lock();
    struct ledger_entry by = ledger_find(&handles, handle);
    struct ledger_entry mapping = {address, size, by.other, 0, by.card};
    if (by.other != 0 && ledger_put(&mappings, mapping)) hold(by.other, (enum sort)by.card);
    backings_unlock();
}

void backings_export(uint64_t handle, int descriptor) {
    backings_lock();
    descriptors_add(&descriptors, descriptor, ledger_find(&handles, handle).other);
    backings_unlock();
}

void backings_import(uint64_t handle, int descriptor) {
    backings_lock();
    add_reference(handle, descriptors_find(&descriptors, descriptor), IMPORTED);
    backings_unlock();
}

void backings_disown(int descriptor) {
    backings_lock();
    descriptors_remove(&descriptors, descriptor);
    backings_unlock();
}

void backings_hold_again(uint64_t number, enum sort sort) {
    backings_lock();
    hold(number, sort);
    backings_unlock();
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

uint64_t backings_hold_imported(int descriptor) {
    backings_lock();
    uint64_t number = descriptors_find(&descriptors, descriptor);
    hold(number, IMPORTED);
    backings_unlock();
    return number;
}

struct backing backings_drop(uint64_t number, enum sort sort) {
    backings_lock();
    struct backing change = drop(number, sort);
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
    struct backing change = drop(entry.other, (enum sort)entry.card);
    backings_unlock();
    return change;
}

/* Mappings of one call follow each other without a gap; one that is unknown leaves its address to be tried no further.
 */
bool backings_unmap(uint64_t *address, uint64_t end, struct backing *change) {
    backings_lock();
    struct ledger_entry mapping = *address < end ? ledger_take(&mappings, *address) : (struct ledger_entry){0};
    if (mapping.key != 0) *change = drop(mapping.other, (enum sort)mapping.card);
    backings_unlock();
    *address += mapping.bytes;
    return mapping.key != 0;
}

bool backings_sweep(struct backing *change) {
    *change = (struct backing){0};
    backings_lock();
    for (size_t i = 0; descriptors.count && i < backings.size && change->bytes == 0; i++)
        if (backings.entries[i].key != 0) *change = look(backings.entries[i].key);
    backings_unlock();
    return change->bytes != 0;
}
