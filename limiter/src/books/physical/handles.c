#include "books/physical/handles.h"

#include "books/hash_table.h"

/* key: the handle, value: the memory number, count: of the handle's references, card: their kind. */
static struct hash_table handles;

void handles_forget_all(void) { hash_table_clear(&handles); }

bool handles_add(uint64_t value, struct handle handle) {
    struct hash_table_entry entry = hash_table_find(&handles, value);
    uint32_t count_before = entry.key != 0 && entry.value == handle.number ? entry.count : 0;
    return hash_table_put(
        &handles, (struct hash_table_entry){
                      .key = value, .value = handle.number, .count = count_before + 1, .card = (int)handle.kind});
}

struct handle handles_find(uint64_t value) {
    struct hash_table_entry entry = hash_table_find(&handles, value);
    return (struct handle){entry.value, (enum reference_kind)entry.card};
}

struct handle handles_release(uint64_t value) {
    struct hash_table_entry entry = hash_table_take(&handles, value);
    if (entry.count > 1) {
        entry.count--;
        hash_table_put(&handles, entry);
    }
    return (struct handle){entry.value, (enum reference_kind)entry.card};
}
