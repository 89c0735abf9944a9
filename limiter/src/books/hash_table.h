/* A table from pointers to what was charged for them: open addressing with linear probing. Not locked: its users lock.
 */
#ifndef VGPU_BOOKS_HASH_TABLE_H
#define VGPU_BOOKS_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_table_entry {
    uint64_t key; /* a device pointer, or what else the driver names things by; 0 = empty */
    uint64_t bytes;
    uint64_t other; /* the key of an entry in another table */
    uint32_t count;
    int card;
};

struct hash_table {
    struct hash_table_entry *entries;
    size_t size; /* 0 or a power of two */
    size_t count;
};

/* Adds an entry; one of the same key is replaced. False when memory is out: nothing has changed. */
bool hash_table_put(struct hash_table *ledger, struct hash_table_entry entry);

/* An entry; its key is 0 where there is none. */
struct hash_table_entry hash_table_find(const struct hash_table *ledger, uint64_t key);

/* Removes an entry; its key is 0 where there was none. */
struct hash_table_entry hash_table_take(struct hash_table *ledger, uint64_t key);

/* Removes those that have that `other`; whether there were any. */
bool hash_table_take_all(struct hash_table *ledger, uint64_t other);

/* Removes all. */
void hash_table_clear(struct hash_table *ledger);

#endif
