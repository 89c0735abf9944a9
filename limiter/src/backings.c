#include "backings.h"

#include <pthread.h>

#include "ledger.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger
    backings;                 /* under the mutex: by a number of ours; `count` is of handles' references and mappings */
static struct ledger handles; /* under the mutex: `other` is the backing's number, `count` this handle's references */
static struct ledger mappings; /* under the mutex: by address; `other` is the backing's number, `bytes` the size */
static uint64_t last_number;   /* under the mutex: handles come again, these do not */

void backings_lock(void) { pthread_mutex_lock(&mutex); }

void backings_unlock(void) { pthread_mutex_unlock(&mutex); }

void backings_forget_all(void) {
    ledger_clear(&backings);
    ledger_clear(&handles);
    ledger_clear(&mappings);
}

/* The functions down to the next line are called under the mutex. */

static void hold(uint64_t number) {
    struct ledger_entry backing = ledger_take(&backings, number);
    backing.count++;
    if (backing.key != 0) ledger_put(&backings, backing);
}

static struct backing drop(uint64_t number) {
    struct ledger_entry backing = ledger_take(&backings, number);
    if (backing.key == 0) return (struct backing){0};
    if (--backing.count == 0) return (struct backing){backing.card, backing.bytes};
    ledger_put(&backings, backing);
    return (struct backing){0};
}

/* A reference by a handle that may have some already. */
static bool add_handle(uint64_t handle, uint64_t number) {
    struct ledger_entry entry = ledger_take(&handles, handle);
    uint32_t before = entry.key != 0 && entry.other == number ? entry.count : 0;
    return ledger_put(&handles, (struct ledger_entry){.key = handle, .other = number, .count = before + 1});
}

/* The number of the backing mapped around an address, which need not be the mapping's first; 0 where none is. */
static uint64_t number_at(uint64_t address) {
    for (size_t i = 0; i < mappings.size; i++) {
        const struct ledger_entry *mapping = &mappings.entries[i];
        if (mapping->key != 0 && address - mapping->key < mapping->bytes) return mapping->other;
    }
    return 0;
}

static uint64_t number_of(uint64_t handle) {
    struct ledger_entry entry = ledger_take(&handles, handle);
    if (entry.key != 0) ledger_put(&handles, entry);
    return entry.other;
}

/* The functions from here on take it. */

bool backings_create(uint64_t handle, struct backing backing) {
    backings_lock();
    uint64_t number = ++last_number;
    struct ledger_entry entry = {.key = number, .bytes = backing.bytes, .count = 1, .card = backing.card};
    bool kept = ledger_put(&backings, entry) && add_handle(handle, number);
    if (!kept) drop(number);
    backings_unlock();
    return kept;
}

void backings_retain(uint64_t handle, uint64_t address) {
    backings_lock();
    uint64_t number = number_at(address);
    if (number != 0 && add_handle(handle, number)) hold(number);
    backings_unlock();
}

void backings_map(uint64_t address, uint64_t size, uint64_t handle) {
    backings_lock();
    uint64_t number = number_of(handle);
    struct ledger_entry mapping = {.key = address, .bytes = size, .other = number};
    if (number != 0 && ledger_put(&mappings, mapping)) hold(number);
    backings_unlock();
}

struct backing backings_release(uint64_t handle) {
    backings_lock();
    struct ledger_entry entry = ledger_take(&handles, handle);
    if (entry.count > 1) {
        entry.count--;
        ledger_put(&handles, entry);
    }
    struct backing freed = drop(entry.other);
    backings_unlock();
    return freed;
}

/* Mappings of one call follow each other without a gap; one that is unknown leaves its address to be tried no further.
 */
bool backings_unmap(uint64_t *address, uint64_t end, struct backing *freed) {
    backings_lock();
    struct ledger_entry mapping = *address < end ? ledger_take(&mappings, *address) : (struct ledger_entry){0};
    if (mapping.key != 0) *freed = drop(mapping.other);
    backings_unlock();
    *address += mapping.bytes;
    return mapping.key != 0;
}
