#include "books/hash_table.h"

#include <stdlib.h>

enum { FIRST_SIZE = 256 };

/* Fibonacci hashing, because device pointers are aligned: it makes the index of high bits of a product, not of low
 * bits. */
static size_t home_index(const struct hash_table *table, uint64_t key) {
    return (size_t)((key * 0x9e3779b97f4a7c15ULL) >> 32) & (table->size - 1);
}

static size_t next_index(const struct hash_table *table, size_t index) { return (index + 1) & (table->size - 1); }

/* Index of the key's entry, or of the empty place where it would be put. */
static size_t find_index(const struct hash_table *table, uint64_t key) {
    size_t index = home_index(table, key);
    while (table->entries[index].key != 0 && table->entries[index].key != key) index = next_index(table, index);
    return index;
}

static bool grow(struct hash_table *table) {
    size_t size = table->size ? table->size * 2 : FIRST_SIZE;
    struct hash_table bigger = {calloc(size, sizeof *table->entries), size, table->count};
    if (!bigger.entries) return false;
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].key != 0) bigger.entries[find_index(&bigger, table->entries[i].key)] = table->entries[i];
    free(table->entries);
    *table = bigger;
    return true;
}

bool hash_table_put(struct hash_table *table, struct hash_table_entry entry) {
    if (table->count * 2 >= table->size && !grow(table)) return false;
    size_t index = find_index(table, entry.key);
    table->count += table->entries[index].key == 0;
    table->entries[index] = entry;
    return true;
}

/* Moves entries behind a removed one back, because a search stops at the first empty place. */
static void close_hole(struct hash_table *table, size_t hole) {
    for (size_t index = next_index(table, hole); table->entries[index].key != 0; index = next_index(table, index)) {
        size_t home = home_index(table, table->entries[index].key);
        size_t mask = table->size - 1;
        if (((index - home) & mask) < ((index - hole) & mask)) continue;
        table->entries[hole] = table->entries[index];
        hole = index;
    }
    table->entries[hole].key = 0;
}

/* Only `key` says whether a place is empty: the other fields keep the values of a removed entry. */
struct hash_table_entry hash_table_find(const struct hash_table *table, uint64_t key) {
    struct hash_table_entry empty = {0};
    if (key == 0 || table->count == 0) return empty;
    struct hash_table_entry found = table->entries[find_index(table, key)];
    return found.key != 0 ? found : empty;
}

struct hash_table_entry hash_table_take(struct hash_table *table, uint64_t key) {
    struct hash_table_entry found = hash_table_find(table, key);
    if (found.key == 0) return found;
    table->count--;
    close_hole(table, find_index(table, key));
    return found;
}

static struct hash_table_entry first_with_value(const struct hash_table *table, uint64_t value) {
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].key != 0 && table->entries[i].value == value) return table->entries[i];
    return (struct hash_table_entry){0};
}

/* Searches from the start for each entry, because removing an entry moves others. */
bool hash_table_take_all(struct hash_table *table, uint64_t value) {
    size_t count_before = table->count;
    for (struct hash_table_entry entry = first_with_value(table, value); entry.key != 0;
         entry = first_with_value(table, value))
        hash_table_take(table, entry.key);
    return table->count != count_before;
}

void hash_table_clear(struct hash_table *table) {
    free(table->entries);
    *table = (struct hash_table){0};
}
