#include "books/physical/mappings.h"

#include "books/hash_table.h"

/* key: the address, value: the memory number, bytes: the size, card: the reference kind. */
static struct hash_table mappings;

void mappings_forget_all(void) { hash_table_clear(&mappings); }

static struct mapping mapping_of(const struct hash_table_entry *entry) {
    return (struct mapping){entry->value, (enum reference_kind)entry->card, entry->bytes};
}

bool mappings_add(uint64_t address, struct mapping mapping) {
    return hash_table_put(
        &mappings, (struct hash_table_entry){
                       .key = address, .bytes = mapping.size, .value = mapping.number, .card = (int)mapping.kind});
}

struct mapping mappings_at(uint64_t address) {
    for (size_t i = 0; i < mappings.size; i++) {
        const struct hash_table_entry *mapping = &mappings.entries[i];
        if (mapping->key != 0 && address - mapping->key < mapping->bytes) return mapping_of(mapping);
    }
    return (struct mapping){0};
}

struct mapping mappings_take(uint64_t address) {
    struct hash_table_entry taken = hash_table_take(&mappings, address);
    return mapping_of(&taken);
}
