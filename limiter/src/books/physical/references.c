#include "books/physical/references.h"

#include "books/hash_table.h"
#include "books/physical/descriptors.h"

/* All under LOCK_PHYSICAL_MEMORY. */
static struct hash_table memories; /* key: the memory number, value: 1 = hidden, count: 1 = a pool's memory */
static struct hash_table counts[REFERENCE_KINDS]; /* key: the memory number, count: of its references of a kind */
static struct hash_table descriptors;             /* books/physical/descriptors.h */
static uint64_t last_number;                      /* the last memory number that was given */

void references_forget_all(void) {
    hash_table_clear(&memories);
    for (int kind = 0; kind < REFERENCE_KINDS; kind++) hash_table_clear(&counts[kind]);
    descriptors_forget_all(&descriptors);
}

uint64_t references_begin(struct physical_memory memory) {
    struct hash_table_entry entry = {++last_number, memory.bytes, 0, 0, memory.card};
    return hash_table_put(&memories, entry) ? last_number : 0;
}

uint64_t references_begin_pool(void) {
    struct hash_table_entry entry = {++last_number, 0, 0, 1, 0};
    return hash_table_put(&memories, entry) ? last_number : 0;
}

void references_set_pool(uint64_t number, int card, uint64_t bytes) {
    struct hash_table_entry entry = hash_table_find(&memories, number);
    entry.card = card;
    entry.bytes = bytes;
    if (entry.key != 0) hash_table_put(&memories, entry);
}

void references_cancel(uint64_t number) { hash_table_take(&memories, number); }

static uint32_t count_of(uint64_t number, enum reference_kind kind) {
    return hash_table_find(&counts[kind], number).count;
}

static void add_to_count(uint64_t number, enum reference_kind kind, uint32_t change) {
    struct hash_table_entry entry = {.key = number, .count = count_of(number, kind) + change};
    if (entry.count != 0)
        hash_table_put(&counts[kind], entry);
    else
        hash_table_take(&counts[kind], number);
}

void references_add(uint64_t number, enum reference_kind kind) {
    if (hash_table_find(&memories, number).key != 0) add_to_count(number, kind, 1);
}

static struct physical_memory free_memory(const struct hash_table_entry *memory) {
    bool is_exported = descriptors_forget(&descriptors, memory->key);
    hash_table_take(&memories, memory->key);
    uint64_t pool = memory->count ? memory->key : 0;
    return (struct physical_memory){memory->card, memory->bytes, MEMORY_FREED, memory->value != 0, is_exported, pool};
}

/* Finds the state of the memory from its references, and returns what changed since the last call. NVML counts the
 * memory while it has a reference of REFERENCE_MADE, or one of REFERENCE_IMPORTED and no open descriptor. */
static struct physical_memory update_state(uint64_t number) {
    struct hash_table_entry memory = hash_table_find(&memories, number);
    if (memory.key == 0 || (memory.value == 0 && count_of(number, REFERENCE_MADE))) return (struct physical_memory){0};
    bool is_open = descriptors_are_open(&descriptors, number);
    bool is_imported = count_of(number, REFERENCE_IMPORTED) != 0;
    if (!is_open && !is_imported && !count_of(number, REFERENCE_MADE) && !count_of(number, REFERENCE_OTHER))
        return free_memory(&memory);
    bool is_hidden = !count_of(number, REFERENCE_MADE) && (is_open || !is_imported);
    if (is_hidden == (memory.value != 0)) return (struct physical_memory){0};
    memory.value = is_hidden;
    hash_table_put(&memories, memory);
    return (struct physical_memory){memory.card, memory.bytes, is_hidden ? MEMORY_HIDDEN : MEMORY_SHOWN,
                                    false,       false,        0};
}

struct physical_memory references_drop(uint64_t number, enum reference_kind kind) {
    if (count_of(number, kind)) add_to_count(number, kind, (uint32_t)-1);
    return update_state(number);
}

/* A pool's memory is counted by what the pool has reserved. */
static bool is_shown_on(const struct hash_table_entry *memory, int card) {
    bool is_hidden = memory->value != 0, is_of_pool = memory->count != 0;
    return memory->key != 0 && memory->card == card && !is_hidden && !is_of_pool;
}

uint64_t references_shown_bytes(int card) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < memories.size; i++)
        if (is_shown_on(&memories.entries[i], card)) bytes += memories.entries[i].bytes;
    return bytes;
}

void references_export(uint64_t number, int descriptor) { descriptors_add(&descriptors, descriptor, number); }

uint64_t references_exported(int descriptor) { return descriptors_find(&descriptors, descriptor); }

void references_disown(int descriptor) { descriptors_remove(&descriptors, descriptor); }

struct physical_memory references_sweep(void) {
    struct physical_memory change = {0};
    for (size_t i = 0; descriptors.count && i < memories.size && change.bytes == 0; i++)
        if (memories.entries[i].key != 0) change = update_state(memories.entries[i].key);
    return change;
}
