/* Combines the tables of handles.c, mappings.c and references.c under one lock. */
#include "books/physical/physical_memory.h"

#include "books/physical/handles.h"
#include "books/physical/mappings.h"
#include "books/physical/references.h"
#include "process/fork.h"
#include "process/lock.h"

static void forget(void) {
    references_forget_all();
    handles_forget_all();
    mappings_forget_all();
}
FORGET_IN_CHILD(forget);

/* The caller holds LOCK_PHYSICAL_MEMORY. */
static bool add_handle(uint64_t value, struct handle handle) {
    bool is_added = handle.number != 0 && handles_add(value, handle);
    if (is_added) references_add(handle.number, handle.kind);
    return is_added;
}

/* The caller holds LOCK_PHYSICAL_MEMORY. */
static uint64_t add_reference(uint64_t number, enum reference_kind kind) {
    references_add(number, kind);
    return number;
}

bool physical_memory_create(uint64_t handle, struct physical_memory memory) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    uint64_t number = references_begin(memory);
    bool is_added = add_handle(handle, (struct handle){number, REFERENCE_MADE});
    if (!is_added) references_cancel(number);
    return is_added;
}

uint64_t physical_memory_hold_foreign(struct physical_memory memory) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return add_reference(references_begin(memory), REFERENCE_IMPORTED);
}

void physical_memory_retain(uint64_t handle, uint64_t address) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    struct mapping mapping = mappings_at(address);
    add_handle(handle, (struct handle){mapping.number, mapping.kind});
}

void physical_memory_map(uint64_t address, uint64_t size, uint64_t handle) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    struct handle found = handles_find(handle);
    struct mapping mapping = {found.number, found.kind, size};
    if (found.number != 0 && mappings_add(address, mapping)) references_add(found.number, found.kind);
}

struct exported_memory physical_memory_export(uint64_t handle, int descriptor) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return references_export(handles_find(handle).number, descriptor);
}

bool physical_memory_is_exported(int descriptor) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return references_exported(descriptor) != 0;
}

uint64_t physical_memory_begin_pool(void) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return add_reference(references_begin_pool(), REFERENCE_MADE);
}

void physical_memory_export_pool(uint64_t number, int descriptor) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    references_export(number, descriptor);
}

void physical_memory_import(uint64_t handle, int descriptor) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    add_handle(handle, (struct handle){references_exported(descriptor), REFERENCE_IMPORTED});
}

void physical_memory_disown(int descriptor) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    references_disown(descriptor);
}

void physical_memory_add_reference(uint64_t number, enum reference_kind kind) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    references_add(number, kind);
}

uint64_t physical_memory_hold(uint64_t handle) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return add_reference(handles_find(handle).number, REFERENCE_OTHER);
}

uint64_t physical_memory_hold_at(uint64_t address) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return add_reference(mappings_at(address).number, REFERENCE_OTHER);
}

int physical_memory_card_at(uint64_t address) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return references_card(mappings_at(address).number);
}

uint64_t physical_memory_hold_imported(int descriptor) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return add_reference(references_exported(descriptor), REFERENCE_IMPORTED);
}

struct physical_memory physical_memory_drop(uint64_t number, enum reference_kind kind) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return references_drop(number, kind);
}

struct physical_memory physical_memory_end_pool(uint64_t number, int card, uint64_t bytes) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    references_set_pool(number, card, bytes);
    return references_drop(number, REFERENCE_MADE);
}

struct physical_memory physical_memory_release(uint64_t handle) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    struct handle released = handles_release(handle);
    return references_drop(released.number, released.kind);
}

/* The mappings that one cuMemUnmap removes follow each other without a gap, so the caller can stop at the first address
 * without a known mapping. */
bool physical_memory_unmap(uint64_t *address, uint64_t end, struct physical_memory *change) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    struct mapping mapping = *address < end ? mappings_take(*address) : (struct mapping){0};
    if (mapping.number != 0) *change = references_drop(mapping.number, mapping.kind);
    *address += mapping.size;
    return mapping.number != 0;
}

uint64_t physical_memory_shown_bytes(int card) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    return references_shown_bytes(card);
}

bool physical_memory_sweep(struct physical_memory *change) {
    HOLD_LOCK(LOCK_PHYSICAL_MEMORY);
    *change = references_sweep();
    return change->bytes != 0;
}
