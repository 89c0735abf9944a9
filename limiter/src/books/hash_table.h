/* A table from pointers to what was charged for them: open addressing with linear probing. Not locked: its users lock.
 */
#ifndef VGPU_LEDGER_H
#define VGPU_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger_entry {
    uint64_t key; /* a device pointer, or what else the driver names things by; 0 = empty */
    uint64_t bytes;
    uint64_t other; /* the key of an entry in another table */
    uint32_t count;
    int card;
};

struct ledger {
    struct ledger_entry *entries;
    size_t size; /* 0 or a power of two */
    size_t count;
};

/* Adds an entry; one of the same key is replaced. False when memory is out: nothing has changed. */
bool ledger_put(struct ledger *ledger, struct ledger_entry entry);

/* An entry; its key is 0 where there is none. */
struct ledger_entry ledger_find(const struct ledger *ledger, uint64_t key);

/* Removes an entry; its key is 0 where there was none. */
struct ledger_entry ledger_take(struct ledger *ledger, uint64_t key);

/* Removes those that have that `other`; whether there were any. */
bool ledger_take_all(struct ledger *ledger, uint64_t other);

/* Removes all. */
void ledger_clear(struct ledger *ledger);

#endif
