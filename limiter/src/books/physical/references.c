#include "books/physical/references.h"

#include "books/hash_table.h"
#include "books/physical/descriptors.h"

/* All under LOCK_PHYSICAL_MEMORY. */
static struct hash_table memories; /* key: the memory number, value: 1 = hidden, count: of enum memory_mark */
static struct hash_table groups;   /* of imported memory; key: the memory number, value: the group */
static struct hash_table counts[REFERENCE_KINDS]; /* key: the memory number, count: of its references of a kind */
static struct hash_table descriptors;             /* books/physical/descriptors.h */
static uint64_t last_number;                      /* the last memory number that was given */

enum memory_mark { IS_OF_POOL = 1, IS_EXPORTED = 2 };

void references_forget_all(void) {
    hash_table_clear(&memories);
    hash_table_clear(&groups);
    for (int kind = 0; kind < REFERENCE_KINDS; kind++) hash_table_clear(&counts[kind]);
    descriptors_forget_all(&descriptors);
}

uint64_t references_begin(struct physical_memory memory) {
    struct hash_table_entry entry = {++last_number, memory.bytes, 0, 0, memory.card};
    if (memory.group && !hash_table_put(&groups, (struct hash_table_entry){.key = last_number, .value = memory.group}))
        return 0;
    if (hash_table_put(&memories, entry)) return last_number;
    hash_table_take(&groups, last_number);
    return 0;
}

uint64_t references_begin_pool(void) {
    struct hash_table_entry entry = {++last_number, 0, 0, IS_OF_POOL, 0};
    return hash_table_put(&memories, entry) ? last_number : 0;
}

void references_set_pool(uint64_t number, int card, uint64_t bytes) {
    struct hash_table_entry entry = hash_table_find(&memories, number);
    entry.card = card;
    entry.bytes = bytes;
    if (entry.key != 0) hash_table_put(&memories, entry);
}

void references_cancel(uint64_t number) {
    hash_table_take(&memories, number);
    hash_table_take(&groups, number);
}

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
    descriptors_forget(&descriptors, memory->key);
    hash_table_take(&memories, memory->key);
    return (struct physical_memory){.card = memory->card,
                                    .bytes = memory->bytes,
                                    .state = MEMORY_FREED,
                                    .was_hidden = memory->value != 0,
                                    .exported = memory->count & IS_EXPORTED ? memory->key : 0,
                                    .pool = memory->count & IS_OF_POOL ? memory->key : 0,
                                    .group = hash_table_take(&groups, memory->key).value};
}

/* Finds the state of the memory from its references, and returns what changed since the last call. Of imported memory
 * only its end matters. NVML counts the memory while it has a reference of REFERENCE_MADE, or one of REFERENCE_IMPORTED
 * and no open descriptor. */
static struct physical_memory update_state(uint64_t number) {
    struct hash_table_entry memory = hash_table_find(&memories, number);
    if (memory.key == 0 || (memory.value == 0 && count_of(number, REFERENCE_MADE))) return (struct physical_memory){0};
    bool is_open = descriptors_are_open(&descriptors, number);
    bool is_imported = count_of(number, REFERENCE_IMPORTED) != 0;
    if (!is_open && !is_imported && !count_of(number, REFERENCE_MADE) && !count_of(number, REFERENCE_OTHER))
        return free_memory(&memory);
    bool is_hidden = !count_of(number, REFERENCE_MADE) && (is_open || !is_imported);
    bool is_foreign = hash_table_find(&groups, number).key != 0;
    if (is_foreign || is_hidden == (memory.value != 0)) return (struct physical_memory){0};
    memory.value = is_hidden;
    hash_table_put(&memories, memory);
    enum memory_state state = is_hidden ? MEMORY_HIDDEN : MEMORY_SHOWN;
    return (struct physical_memory){.card = memory.card, .bytes = memory.bytes, .state = state};
}

struct physical_memory references_drop(uint64_t number, enum reference_kind kind) {
    if (count_of(number, kind)) add_to_count(number, kind, (uint32_t)-1);
    return update_state(number);
}

/* A pool's memory is counted by what the pool has reserved, imported memory for its exporter. */
static bool is_shown_on(const struct hash_table_entry *memory, int card) {
    bool is_hidden = memory->value != 0, is_of_pool = memory->count & IS_OF_POOL;
    bool is_foreign = hash_table_find(&groups, memory->key).key != 0;
    return memory->key != 0 && memory->card == card && !is_hidden && !is_of_pool && !is_foreign;
}

uint64_t references_shown_bytes(int card) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < memories.size; i++)
        if (is_shown_on(&memories.entries[i], card)) bytes += memories.entries[i].bytes;
    return bytes;
}

struct exported_memory references_export(uint64_t number, int descriptor) {
    struct hash_table_entry memory = hash_table_find(&memories, number);
    if (memory.key == 0) return (struct exported_memory){0};
    descriptors_add(&descriptors, descriptor, number);
    memory.count |= IS_EXPORTED;
    hash_table_put(&memories, memory);
    return (struct exported_memory){
        .number = number, .card = memory.card, .bytes = memory.bytes, .group = hash_table_find(&groups, number).value};
}

int references_card(uint64_t number) {
    struct hash_table_entry memory = hash_table_find(&memories, number);
    return memory.key != 0 ? memory.card : -1;
}

uint64_t references_exported(int descriptor) { return descriptors_find(&descriptors, descriptor); }

void references_disown(int descriptor) { descriptors_remove(&descriptors, descriptor); }

struct physical_memory references_sweep(void) {
    struct physical_memory change = {0};
    for (size_t i = 0; descriptors.count && i < memories.size && change.bytes == 0; i++)
        if (memories.entries[i].key != 0) change = update_state(memories.entries[i].key);
    return change;
}
