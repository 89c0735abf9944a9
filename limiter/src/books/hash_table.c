#include "books/hash_table.h"

#include <stdlib.h>

enum { FIRST_SIZE = 256 };

/* Device pointers are aligned, so their low bits say little: Fibonacci hashing takes the high ones. */
static size_t home(const struct hash_table *ledger, uint64_t key) {
    return (size_t)((key * 0x9e3779b97f4a7c15ULL) >> 32) & (ledger->size - 1);
}

static size_t next(const struct hash_table *ledger, size_t place) { return (place + 1) & (ledger->size - 1); }

/* Where the key stands, or the empty place where it would. */
static size_t find(const struct hash_table *ledger, uint64_t key) {
    size_t place = home(ledger, key);
    while (ledger->entries[place].key != 0 && ledger->entries[place].key != key) place = next(ledger, place);
    return place;
}

static bool grow(struct hash_table *ledger) {
    size_t size = ledger->size ? ledger->size * 2 : FIRST_SIZE;
    struct hash_table bigger = {calloc(size, sizeof *ledger->entries), size, ledger->count};
    if (!bigger.entries) return false;
    for (size_t i = 0; i < ledger->size; i++)
        if (ledger->entries[i].key != 0) bigger.entries[find(&bigger, ledger->entries[i].key)] = ledger->entries[i];
    free(ledger->entries);
    *ledger = bigger;
    return true;
}

bool hash_table_put(struct hash_table *ledger, struct hash_table_entry entry) {
    if (ledger->count * 2 >= ledger->size && !grow(ledger)) return false;
    size_t place = find(ledger, entry.key);
    ledger->count += ledger->entries[place].key == 0;
    ledger->entries[place] = entry;
    return true;
}

/* Moves back what stood behind the hole and would no longer be found. */
static void close_hole(struct hash_table *ledger, size_t hole) {
    for (size_t place = next(ledger, hole); ledger->entries[place].key != 0; place = next(ledger, place)) {
        size_t wanted = home(ledger, ledger->entries[place].key);
        size_t mask = ledger->size - 1;
        if (((place - wanted) & mask) < ((place - hole) & mask)) continue;
        ledger->entries[hole] = ledger->entries[place];
        hole = place;
    }
    ledger->entries[hole].key = 0;
}

/* An empty place may hold what is left of a former entry. */
struct hash_table_entry hash_table_find(const struct hash_table *ledger, uint64_t key) {
    struct hash_table_entry none = {0};
    if (key == 0 || ledger->count == 0) return none;
    struct hash_table_entry found = ledger->entries[find(ledger, key)];
    return found.key != 0 ? found : none;
}

struct hash_table_entry hash_table_take(struct hash_table *ledger, uint64_t key) {
    struct hash_table_entry found = hash_table_find(ledger, key);
    if (found.key == 0) return found;
    ledger->count--;
    close_hole(ledger, find(ledger, key));
    return found;
}

/* Taking one out moves others. Its key is 0 where there is none. */
static struct hash_table_entry any_of(const struct hash_table *ledger, uint64_t other) {
    for (size_t i = 0; i < ledger->size; i++)
        if (ledger->entries[i].key != 0 && ledger->entries[i].other == other) return ledger->entries[i];
    return (struct hash_table_entry){0};
}

bool hash_table_take_all(struct hash_table *ledger, uint64_t other) {
    size_t before = ledger->count;
    for (struct hash_table_entry left = any_of(ledger, other); left.key != 0; left = any_of(ledger, other))
        hash_table_take(ledger, left.key);
    return ledger->count != before;
}

void hash_table_clear(struct hash_table *ledger) {
    free(ledger->entries);
    *ledger = (struct hash_table){0};
}
