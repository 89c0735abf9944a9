#include "books/pointers.h"

#include <stdlib.h>

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table pointers; /* under the mutex: `bytes` 0 marks a piece, `other` 1 managed memory */
static struct hash_table chunks;   /* under the mutex: by chunk, `count` is of its pieces */

static void forget(void) {
    hash_table_clear(&pointers);
    hash_table_clear(&chunks);
}
FORGET_IN_CHILD(forget);

/* Where all pointers lie that were ever here; atomically, under the mutex when written. A pool's, which lie elsewhere,
 * are told by it without the mutex. */
static uint64_t lowest = UINT64_MAX, highest;

/* Under the mutex. */
static bool put(struct hash_table_entry entry) {
    if (entry.key < lowest) __atomic_store_n(&lowest, entry.key, __ATOMIC_RELAXED);
    if (entry.key > highest) __atomic_store_n(&highest, entry.key, __ATOMIC_RELAXED);
    return hash_table_put(&pointers, entry);
}

static bool is_elsewhere(uint64_t pointer) {
    return pointer < __atomic_load_n(&lowest, __ATOMIC_RELAXED) ||
           pointer > __atomic_load_n(&highest, __ATOMIC_RELAXED);
}

/* Never 0, which is the ledger's mark of emptiness. */
static uint64_t chunk_of(uint64_t pointer) { return pointer / GRANULARITY + 1; }

bool pointers_add(uint64_t pointer, struct pointer_charge holding) {
    struct hash_table_entry entry = {pointer, holding.bytes, holding.is_managed, 0, holding.card};
    lock_take(LOCK_POINTERS);
    bool kept = put(entry);
    lock_release(LOCK_POINTERS);
    return kept;
}

/* Under the mutex. What was taken out leaves room to be put in again. */
static bool join(uint64_t pointer) {
    struct hash_table_entry chunk = hash_table_take(&chunks, chunk_of(pointer));
    if (chunk.key == 0) return false;
    bool kept = put((struct hash_table_entry){.key = pointer, .card = chunk.card});
    chunk.count += kept;
    hash_table_put(&chunks, chunk);
    return kept;
}

bool pointers_join_chunk(uint64_t pointer) {
    lock_take(LOCK_POINTERS);
    bool joined = join(pointer);
    lock_release(LOCK_POINTERS);
    return joined;
}

/* Under the mutex. */
static bool add_chunk(uint64_t pointer, int card) {
    if (!hash_table_put(&chunks, (struct hash_table_entry){.key = chunk_of(pointer), .count = 1, .card = card}))
        return false;
    if (put((struct hash_table_entry){.key = pointer, .card = card})) return true;
    hash_table_take(&chunks, chunk_of(pointer));
    return false;
}

bool pointers_add_piece(uint64_t pointer, int card, bool *spare) {
    lock_take(LOCK_POINTERS);
    *spare = join(pointer);
    bool kept = *spare || add_chunk(pointer, card);
    lock_release(LOCK_POINTERS);
    return kept;
}

/* Under the mutex. Whether the piece was its chunk's last. */
static bool leave_chunk(uint64_t pointer) {
    struct hash_table_entry chunk = hash_table_take(&chunks, chunk_of(pointer));
    if (chunk.count <= 1) return chunk.key != 0;
    chunk.count--;
    hash_table_put(&chunks, chunk);
    return false;
}

bool pointers_take(uint64_t pointer, struct pointer_charge *holding) {
    if (is_elsewhere(pointer)) return false;
    lock_take(LOCK_POINTERS);
    struct hash_table_entry entry = hash_table_take(&pointers, pointer);
    *holding = (struct pointer_charge){entry.card, entry.bytes, entry.key != 0 && entry.bytes == 0, entry.other != 0};
    if (holding->is_piece && leave_chunk(pointer)) holding->bytes = GRANULARITY;
    lock_release(LOCK_POINTERS);
    return entry.key != 0;
}

uint64_t pointers_put_back(uint64_t pointer, const struct pointer_charge *holding) {
    bool spare = false;
    if (holding->is_piece)
        pointers_add_piece(pointer, holding->card, &spare);
    else
        pointers_add(pointer, *holding);
    return spare ? holding->bytes : 0;
}

uint64_t *pointers_list(size_t *count) {
    lock_take(LOCK_POINTERS);
    uint64_t *list = pointers.count ? malloc(pointers.count * sizeof *list) : NULL;
    *count = 0;
    for (size_t i = 0; list && i < pointers.size; i++)
        if (pointers.entries[i].key != 0) list[(*count)++] = pointers.entries[i].key;
    lock_release(LOCK_POINTERS);
    return list;
}
