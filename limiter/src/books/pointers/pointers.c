#include "books/pointers/pointers.h"

#include <stdlib.h>

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

/* The tables are under LOCK_POINTERS.
 * pointers: key: the address, bytes: its charge, 0 = a piece, value: 1 = managed memory.
 * chunks: key: `chunk_of` an address, count: of the pieces in the chunk. */
static struct hash_table pointers, chunks;

static void forget(void) {
    hash_table_clear(&pointers);
    hash_table_clear(&chunks);
}
FORGET_IN_CHILD(forget);

/* Lowest and highest address that was ever added. Atomic, written under LOCK_POINTERS. Pointers of pools lie outside
 * this range, so that freeing them takes no lock. */
static uint64_t lowest = UINT64_MAX, highest;

/* The caller holds LOCK_POINTERS. */
static bool put(struct hash_table_entry entry) {
    if (entry.key < lowest) __atomic_store_n(&lowest, entry.key, __ATOMIC_RELAXED);
    if (entry.key > highest) __atomic_store_n(&highest, entry.key, __ATOMIC_RELAXED);
    return hash_table_put(&pointers, entry);
}

static bool is_out_of_range(uint64_t pointer) {
    return pointer < __atomic_load_n(&lowest, __ATOMIC_RELAXED) ||
           pointer > __atomic_load_n(&highest, __ATOMIC_RELAXED);
}

/* Never 0, which marks an empty place in a hash table. */
static uint64_t chunk_of(uint64_t pointer) { return pointer / GRANULARITY + 1; }

bool pointers_add(uint64_t pointer, struct pointer_charge charge) {
    struct hash_table_entry entry = {pointer, charge.bytes, charge.is_managed, 0, charge.card};
    HOLD_LOCK(LOCK_POINTERS);
    return put(entry);
}

/* The caller holds LOCK_POINTERS. Putting the chunk back cannot fail: the place that it was taken from is free. */
static bool join(uint64_t pointer) {
    struct hash_table_entry chunk = hash_table_take(&chunks, chunk_of(pointer));
    if (chunk.key == 0) return false;
    bool is_added = put((struct hash_table_entry){.key = pointer, .card = chunk.card});
    chunk.count += is_added;
    hash_table_put(&chunks, chunk);
    return is_added;
}

bool pointers_join_chunk(uint64_t pointer) {
    HOLD_LOCK(LOCK_POINTERS);
    return join(pointer);
}

/* The caller holds LOCK_POINTERS. */
static bool add_chunk(uint64_t pointer, int card) {
    if (!hash_table_put(&chunks, (struct hash_table_entry){.key = chunk_of(pointer), .count = 1, .card = card}))
        return false;
    if (put((struct hash_table_entry){.key = pointer, .card = card})) return true;
    hash_table_take(&chunks, chunk_of(pointer));
    return false;
}

bool pointers_add_piece(uint64_t pointer, int card, bool *is_surplus) {
    HOLD_LOCK(LOCK_POINTERS);
    *is_surplus = join(pointer);
    return *is_surplus || add_chunk(pointer, card);
}

/* True where the piece was the last of its chunk. The caller holds LOCK_POINTERS. */
static bool leave_chunk(uint64_t pointer) {
    struct hash_table_entry chunk = hash_table_take(&chunks, chunk_of(pointer));
    if (chunk.count <= 1) return chunk.key != 0;
    chunk.count--;
    hash_table_put(&chunks, chunk);
    return false;
}

bool pointers_take(uint64_t pointer, struct pointer_charge *charge) {
    if (is_out_of_range(pointer)) return false;
    HOLD_LOCK(LOCK_POINTERS);
    struct hash_table_entry entry = hash_table_take(&pointers, pointer);
    *charge = (struct pointer_charge){entry.card, entry.bytes, entry.key != 0 && entry.bytes == 0, entry.value != 0};
    if (charge->is_piece && leave_chunk(pointer)) charge->bytes = GRANULARITY;
    return entry.key != 0;
}

uint64_t pointers_put_back(uint64_t pointer, const struct pointer_charge *charge) {
    bool is_surplus = false;
    if (charge->is_piece)
        pointers_add_piece(pointer, charge->card, &is_surplus);
    else
        pointers_add(pointer, *charge);
    return is_surplus ? charge->bytes : 0;
}

uint64_t *pointers_list(size_t *count) {
    HOLD_LOCK(LOCK_POINTERS);
    uint64_t *list = pointers.count ? malloc(pointers.count * sizeof *list) : NULL;
    *count = 0;
    for (size_t i = 0; list && i < pointers.size; i++)
        if (pointers.entries[i].key != 0) list[(*count)++] = pointers.entries[i].key;
    return list;
}
