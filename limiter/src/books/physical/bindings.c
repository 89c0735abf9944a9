#include "books/physical/bindings.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

/* Under LOCK_BINDINGS. key: `key_of` owner and part, value: the memory number, bytes: the owner, card: the reference
 * kind. */
static struct hash_table bindings;

static void forget(void) { hash_table_clear(&bindings); }
FORGET_IN_CHILD(forget);

/* Never 0, which marks an empty place in a hash table. */
static uint64_t key_of(uint64_t owner, uint64_t part) {
    return (owner * 0x9e3779b97f4a7c15ULL ^ part * 0xc2b2ae3d27d4eb4fULL) | 1;
}

static struct physical_memory drop_reference(const struct hash_table_entry *binding) {
    return binding->key != 0 ? physical_memory_drop(binding->value, (enum reference_kind)binding->card)
                             : (struct physical_memory){0};
}

/* Returns the former binding of the part; its key is 0 where there was none. */
static struct hash_table_entry replace(uint64_t owner, uint64_t part, uint64_t number, enum reference_kind kind) {
    uint64_t key = key_of(owner, part);
    HOLD_LOCK(LOCK_BINDINGS);
    struct hash_table_entry former = hash_table_take(&bindings, key);
    if (number != 0)
        hash_table_put(&bindings,
                       (struct hash_table_entry){.key = key, .bytes = owner, .value = number, .card = (int)kind});
    return former;
}

struct physical_memory bindings_put(uint64_t owner, uint64_t part, uint64_t number, enum reference_kind kind) {
    struct hash_table_entry former = replace(owner, part, number, kind);
    return drop_reference(&former);
}

static uint64_t memory_of(uint64_t owner, uint64_t part) {
    HOLD_LOCK(LOCK_BINDINGS);
    return hash_table_find(&bindings, key_of(owner, part)).value;
}

uint64_t bindings_hold(uint64_t owner, uint64_t part) {
    uint64_t number = memory_of(owner, part);
    physical_memory_add_reference(number, REFERENCE_OTHER);
    return number;
}

/* Removes one binding of an owner and returns a copy; its key is 0 where the owner has none. */
static struct hash_table_entry take_any(uint64_t owner) {
    struct hash_table_entry found = {0};
    HOLD_LOCK(LOCK_BINDINGS);
    for (size_t i = 0; i < bindings.size && found.key == 0; i++)
        if (bindings.entries[i].key != 0 && bindings.entries[i].bytes == owner) found = bindings.entries[i];
    hash_table_take(&bindings, found.key);
    return found;
}

bool bindings_remove_any(uint64_t owner, struct physical_memory *change) {
    struct hash_table_entry found = take_any(owner);
    *change = drop_reference(&found);
    return found.key != 0;
}
