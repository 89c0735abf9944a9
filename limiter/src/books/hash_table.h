/* Hash table from 64-bit keys to fixed entries: open addressing with linear probing. Not locked: its users lock. */
#ifndef VGPU_BOOKS_HASH_TABLE_H
#define VGPU_BOOKS_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each user says in a comment at its table what the fields after `key` mean there: some keep another number in a field
 * than its name says, such as the kind of a reference in `card`. */
struct hash_table_entry {
    uint64_t key; /* such as a device pointer or a driver handle; 0 = the place is empty */
    uint64_t bytes;
    uint64_t value;
    uint32_t count;
    int card;
};

/* All zeros: an empty table. */
struct hash_table {
    struct hash_table_entry *entries;
    size_t size;  /* of the array `entries`: 0 or a power of two */
    size_t count; /* of the places in use */
};

/* Adds an entry or replaces the one with its key. False where malloc fails: nothing has changed then. */
bool hash_table_put(struct hash_table *table, struct hash_table_entry entry);

/* A copy of an entry; its key is 0 where there is none. */
struct hash_table_entry hash_table_find(const struct hash_table *table, uint64_t key);

/* Removes an entry and returns a copy; its key is 0 where there was none. */
struct hash_table_entry hash_table_take(struct hash_table *table, uint64_t key);

/* Removes all entries with this `value`; true where there were any. */
bool hash_table_take_all(struct hash_table *table, uint64_t value);

/* Removes all entries and frees the memory. */
void hash_table_clear(struct hash_table *table);

#endif
