#include "books/references.h"

#include "books/descriptors.h"
#include "books/hash_table.h"

static struct hash_table backings; /* by number; `other` says whether it is hidden, `count` whether a pool's */
static struct hash_table counts[REFERENCE_KINDS]; /* by number, `count` of them */
static struct hash_table descriptors;             /* see descriptors.h */
static uint64_t last_number;

void references_forget_all(void) {
    hash_table_clear(&backings);
    for (int sort = 0; sort < REFERENCE_KINDS; sort++) hash_table_clear(&counts[sort]);
    descriptors_forget_all(&descriptors);
}

uint64_t references_begin(struct physical_memory physical_memory) {
    struct hash_table_entry entry = {++last_number, physical_memory.bytes, 0, 0, physical_memory.card};
    return hash_table_put(&backings, entry) ? last_number : 0;
}

uint64_t references_begin_pool(void) {
    struct hash_table_entry entry = {++last_number, 0, 0, 1, 0};
    return hash_table_put(&backings, entry) ? last_number : 0;
}

void references_set_pool(uint64_t number, int card, uint64_t bytes) {
    struct hash_table_entry entry = hash_table_find(&backings, number);
    entry.card = card;
    entry.bytes = bytes;
    if (entry.key != 0) hash_table_put(&backings, entry);
}

void references_cancel(uint64_t number) { hash_table_take(&backings, number); }

static uint32_t count_of(uint64_t number, enum reference_kind sort) {
    return hash_table_find(&counts[sort], number).count;
}

static void count(uint64_t number, enum reference_kind sort, uint32_t more) {
    struct hash_table_entry entry = {.key = number, .count = count_of(number, sort) + more};
    if (entry.count != 0)
        hash_table_put(&counts[sort], entry);
    else
        hash_table_take(&counts[sort], number);
}

void references_add(uint64_t number, enum reference_kind sort) {
    if (hash_table_find(&backings, number).key != 0) count(number, sort, 1);
}

static struct physical_memory freed(const struct hash_table_entry *physical_memory) {
    bool is_exported = descriptors_forget(&descriptors, physical_memory->key);
    hash_table_take(&backings, physical_memory->key);
    uint64_t pool = physical_memory->count ? physical_memory->key : 0;
    return (struct physical_memory){
        physical_memory->card, physical_memory->bytes, MEMORY_FREED, physical_memory->other != 0, is_exported, pool};
}

/* What has changed since it was looked at last. */
static struct physical_memory look(uint64_t number) {
    struct hash_table_entry physical_memory = hash_table_find(&backings, number);
    if (physical_memory.key == 0 || (physical_memory.other == 0 && count_of(number, REFERENCE_MADE)))
        return (struct physical_memory){0};
    bool is_open = descriptors_are_open(&descriptors, number);
    bool is_imported = count_of(number, REFERENCE_IMPORTED) != 0;
    if (!is_open && !is_imported && !count_of(number, REFERENCE_MADE) && !count_of(number, REFERENCE_UNSEEN))
        return freed(&physical_memory);
    bool is_hidden = !count_of(number, REFERENCE_MADE) && (is_open || !is_imported);
    if (is_hidden == (physical_memory.other != 0)) return (struct physical_memory){0};
    physical_memory.other = is_hidden;
    hash_table_put(&backings, physical_memory);
    return (struct physical_memory){
        physical_memory.card, physical_memory.bytes, is_hidden ? MEMORY_HIDDEN : MEMORY_SHOWN, false, false, 0};
}

struct physical_memory references_drop(uint64_t number, enum reference_kind sort) {
    if (count_of(number, sort)) count(number, sort, (uint32_t)-1);
    return look(number);
}

void references_export(uint64_t number, int descriptor) { descriptors_add(&descriptors, descriptor, number); }

uint64_t references_exported(int descriptor) { return descriptors_find(&descriptors, descriptor); }

void references_disown(int descriptor) { descriptors_remove(&descriptors, descriptor); }

struct physical_memory references_sweep(void) {
    struct physical_memory change = {0};
    for (size_t i = 0; descriptors.count && i < backings.size && change.bytes == 0; i++)
        if (backings.entries[i].key != 0) change = look(backings.entries[i].key);
    return change;
}
