#include "books/hash_table.h"

#include <stdlib.h>

enum { FIRST_SIZE = 256 };

/* Device pointers are aligned, so their low bits say little: Fibonacci hashing takes the high ones. */
static size_t home(const struct ledger *ledger, uint64_t key) {
    return (size_t)((key * 0x9e3779b97f4a7c15ULL) >> 32) & (ledger->size - 1);
}

static size_t next(const struct ledger *ledger, size_t place) { return (place + 1) & (ledger->size - 1); }

/* Where the key stands, or the empty place where it would. */
static size_t find(const struct ledger *ledger, uint64_t key) {
    size_t place = home(ledger, key);
    while (ledger->entries[place].key != 0 && ledger->entries[place].key != key) place = next(ledger, place);
    return place;
}

static bool grow(struct ledger *ledger) {
    size_t size = ledger->size ? ledger->size * 2 : FIRST_SIZE;
    struct ledger bigger = {calloc(size, sizeof *ledger->entries), size, ledger->count};
    if (!bigger.entries) return false;
    for (size_t i = 0; i < ledger->size; i++)
        if (ledger->entries[i].key != 0) bigger.entries[find(&bigger, ledger->entries[i].key)] = ledger->entries[i];
    free(ledger->entries);
    *ledger = bigger;
    return true;
}

bool ledger_put(struct ledger *ledger, struct ledger_entry entry) {
    if (ledger->count * 2 >= ledger->size && !grow(ledger)) return false;
    size_t place = find(ledger, entry.key);
    ledger->count += ledger->entries[place].key == 0;
    ledger->entries[place] = entry;
    return true;
}

/* Moves back what stood behind the hole and would no longer be found. */
static void close_hole(struct ledger *ledger, size_t hole) {
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
struct ledger_entry ledger_find(const struct ledger *ledger, uint64_t key) {
    struct ledger_entry none = {0};
    if (key == 0 || ledger->count == 0) return none;
    struct ledger_entry found = ledger->entries[find(ledger, key)];
    return found.key != 0 ? found : none;
}

struct ledger_entry ledger_take(struct ledger *ledger, uint64_t key) {
    struct ledger_entry found = ledger_find(ledger, key);
    if (found.key == 0) return found;
    ledger->count--;
    close_hole(ledger, find(ledger, key));
    return found;
}

/* Taking one out moves others. Its key is 0 where there is none. */
static struct ledger_entry any_of(const struct ledger *ledger, uint64_t other) {
    for (size_t i = 0; i < ledger->size; i++)
        if (ledger->entries[i].key != 0 && ledger->entries[i].other == other) return ledger->entries[i];
    return (struct ledger_entry){0};
}

bool ledger_take_all(struct ledger *ledger, uint64_t other) {
    size_t before = ledger->count;
    for (struct ledger_entry left = any_of(ledger, other); left.key != 0; left = any_of(ledger, other))
        ledger_take(ledger, left.key);
    return ledger->count != before;
}

void ledger_clear(struct ledger *ledger) {
    free(ledger->entries);
    *ledger = (struct ledger){0};
}
