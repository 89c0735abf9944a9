/* The three books together, under one lock: what refers to memory, its handles, its mappings. */
#include "books/physical_memory.h"

#include <pthread.h>

#include "books/handles.h"
#include "books/mappings.h"
#include "books/references.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void backings_lock(void) { pthread_mutex_lock(&mutex); }

void backings_unlock(void) { pthread_mutex_unlock(&mutex); }

void backings_forget_all(void) {
    references_forget_all();
    handles_forget_all();
    mappings_forget_all();
}

/* The functions down to the next line are called under the mutex. */

static bool add_handle(uint64_t value, struct handle handle) {
    bool added = handle.number != 0 && handles_add(value, handle);
    if (added) references_add(handle.number, handle.sort);
    return added;
}

static uint64_t refer(uint64_t number, enum sort sort) {
    references_add(number, sort);
    return number;
}

/* The functions from here on take it. */

bool backings_create(uint64_t handle, struct backing backing) {
    backings_lock();
    uint64_t number = references_begin(backing);
    bool kept = add_handle(handle, (struct handle){number, MADE});
    if (!kept) references_cancel(number);
    backings_unlock();
    return kept;
}

void backings_retain(uint64_t handle, uint64_t address) {
    backings_lock();
    struct mapping mapping = mappings_at(address);
    add_handle(handle, (struct handle){mapping.number, mapping.sort});
    backings_unlock();
}

void backings_map(uint64_t address, uint64_t size, uint64_t handle) {
    backings_lock();
    struct handle by = handles_find(handle);
    struct mapping mapping = {by.number, by.sort, size};
    if (by.number != 0 && mappings_add(address, mapping)) references_add(by.number, by.sort);
    backings_unlock();
}

void backings_export(uint64_t handle, int descriptor) {
    backings_lock();
    references_export(handles_find(handle).number, descriptor);
    backings_unlock();
}

uint64_t backings_begin_pool(void) {
    backings_lock();
    uint64_t number = refer(references_begin_pool(), MADE);
    backings_unlock();
    return number;
}

void backings_export_pool(uint64_t number, int descriptor) {
    backings_lock();
    references_export(number, descriptor);
    backings_unlock();
}

void backings_import(uint64_t handle, int descriptor) {
    backings_lock();
    add_handle(handle, (struct handle){references_exported(descriptor), IMPORTED});
    backings_unlock();
}

void backings_disown(int descriptor) {
    backings_lock();
    references_disown(descriptor);
    backings_unlock();
}

void backings_hold_again(uint64_t number, enum sort sort) {
    backings_lock();
    references_add(number, sort);
    backings_unlock();
}

uint64_t backings_hold(uint64_t handle) {
    backings_lock();
    uint64_t number = refer(handles_find(handle).number, UNSEEN);
    backings_unlock();
    return number;
}

uint64_t backings_hold_at(uint64_t address) {
    backings_lock();
    uint64_t number = refer(mappings_at(address).number, UNSEEN);
    backings_unlock();
    return number;
}

uint64_t backings_hold_imported(int descriptor) {
    backings_lock();
    uint64_t number = refer(references_exported(descriptor), IMPORTED);
    backings_unlock();
    return number;
}

struct backing backings_drop(uint64_t number, enum sort sort) {
    backings_lock();
    struct backing change = references_drop(number, sort);
    backings_unlock();
    return change;
}

struct backing backings_end_pool(uint64_t number, int card, uint64_t bytes) {
    backings_lock();
    references_set_pool(number, card, bytes);
    struct backing change = references_drop(number, MADE);
    backings_unlock();
    return change;
}

struct backing backings_release(uint64_t handle) {
    backings_lock();
    struct handle released = handles_release(handle);
    struct backing change = references_drop(released.number, released.sort);
    backings_unlock();
    return change;
}

/* Mappings of one call follow each other without a gap; one that is unknown leaves its address to be tried no further.
 */
bool backings_unmap(uint64_t *address, uint64_t end, struct backing *change) {
    backings_lock();
    struct mapping mapping = *address < end ? mappings_take(*address) : (struct mapping){0};
    if (mapping.number != 0) *change = references_drop(mapping.number, mapping.sort);
    backings_unlock();
    *address += mapping.size;
    return mapping.number != 0;
}

bool backings_sweep(struct backing *change) {
    backings_lock();
    *change = references_sweep();
    backings_unlock();
    return change->bytes != 0;
}
