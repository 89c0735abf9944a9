#include "books/pointers.h"

#include <pthread.h>
#include <stdlib.h>

#include "books/hash_table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger pointers; /* under the mutex: `bytes` 0 marks a piece, `other` 1 managed memory */
static struct ledger chunks;   /* under the mutex: by chunk, `count` is of its pieces */

void holdings_lock(void) { pthread_mutex_lock(&mutex); }

void holdings_unlock(void) { pthread_mutex_unlock(&mutex); }

void holdings_forget_all(void) {
    ledger_clear(&pointers);
    ledger_clear(&chunks);
}

/* Where all pointers lie that were ever here; atomically, under the mutex when written. A pool's, which lie elsewhere,
 * are told by it without the mutex. */
static uint64_t lowest = UINT64_MAX, highest;

/* Under the mutex. */
static bool put(struct ledger_entry entry) {
    if (entry.key < lowest) __atomic_store_n(&lowest, entry.key, __ATOMIC_RELAXED);
    if (entry.key > highest) __atomic_store_n(&highest, entry.key, __ATOMIC_RELAXED);
    return ledger_put(&pointers, entry);
}

static bool is_elsewhere(uint64_t pointer) {
    return pointer < __atomic_load_n(&lowest, __ATOMIC_RELAXED) ||
           pointer > __atomic_load_n(&highest, __ATOMIC_RELAXED);
}

/* Never 0, which is the ledger's mark of emptiness. */
static uint64_t chunk_of(uint64_t pointer) { return pointer / GRANULE + 1; }

bool holdings_add(uint64_t pointer, struct holding holding) {
    struct ledger_entry entry = {pointer, holding.bytes, holding.is_managed, 0, holding.card};
    holdings_lock();
    bool kept = put(entry);
    holdings_unlock();
    return kept;
}

/* Under the mutex. What was taken out leaves room to be put in again. */
static bool join(uint64_t pointer) {
    struct ledger_entry chunk = ledger_take(&chunks, chunk_of(pointer));
    if (chunk.key == 0) return false;
    bool kept = put((struct ledger_entry){.key = pointer, .card = chunk.card});
    chunk.count += kept;
    ledger_put(&chunks, chunk);
    return kept;
}

bool holdings_join(uint64_t pointer) {
    holdings_lock();
    bool joined = join(pointer);
    holdings_unlock();
    return joined;
}

/* Under the mutex. */
static bool add_chunk(uint64_t pointer, int card) {
    if (!ledger_put(&chunks, (struct ledger_entry){.key = chunk_of(pointer), .count = 1, .card = card})) return false;
    if (put((struct ledger_entry){.key = pointer, .card = card})) return true;
    ledger_take(&chunks, chunk_of(pointer));
    return false;
}

bool holdings_add_piece(uint64_t pointer, int card, bool *spare) {
    holdings_lock();
    *spare = join(pointer);
    bool kept = *spare || add_chunk(pointer, card);
    holdings_unlock();
    return kept;
}

/* Under the mutex. Whether the piece was its chunk's last. */
static bool leave_chunk(uint64_t pointer) {
    struct ledger_entry chunk = ledger_take(&chunks, chunk_of(pointer));
    if (chunk.count <= 1) return chunk.key != 0;
    chunk.count--;
    ledger_put(&chunks, chunk);
    return false;
}

bool holdings_take(uint64_t pointer, struct holding *holding) {
    if (is_elsewhere(pointer)) return false;
    holdings_lock();
    struct ledger_entry entry = ledger_take(&pointers, pointer);
    *holding = (struct holding){entry.card, entry.bytes, entry.key != 0 && entry.bytes == 0, entry.other != 0};
    if (holding->is_piece && leave_chunk(pointer)) holding->bytes = GRANULE;
    holdings_unlock();
    return entry.key != 0;
}

uint64_t holdings_put_back(uint64_t pointer, const struct holding *holding) {
    bool spare = false;
    if (holding->is_piece)
        holdings_add_piece(pointer, holding->card, &spare);
    else
        holdings_add(pointer, *holding);
    return spare ? holding->bytes : 0;
}

uint64_t *holdings_list(size_t *count) {
    holdings_lock();
    uint64_t *list = pointers.count ? malloc(pointers.count * sizeof *list) : NULL;
    *count = 0;
    for (size_t i = 0; list && i < pointers.size; i++)
        if (pointers.entries[i].key != 0) list[(*count)++] = pointers.entries[i].key;
    holdings_unlock();
    return list;
}
