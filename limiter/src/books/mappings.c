#include "books/mappings.h"

#include "books/hash_table.h"

static struct hash_table mappings; /* by address; `other` is the number, `bytes` the size, `card` the sort */

void mappings_forget_all(void) { hash_table_clear(&mappings); }

static struct mapping read(const struct hash_table_entry *entry) {
    return (struct mapping){entry->other, (enum reference_kind)entry->card, entry->bytes};
}

bool mappings_add(uint64_t address, struct mapping mapping) {
    return hash_table_put(&mappings,
                          (struct hash_table_entry){address, mapping.size, mapping.number, 0, (int)mapping.sort});
}

struct mapping mappings_at(uint64_t address) {
    for (size_t i = 0; i < mappings.size; i++) {
        const struct hash_table_entry *mapping = &mappings.entries[i];
        if (mapping->key != 0 && address - mapping->key < mapping->bytes) return read(mapping);
    }
    return (struct mapping){0};
}

struct mapping mappings_take(uint64_t address) {
    struct hash_table_entry taken = hash_table_take(&mappings, address);
    return read(&taken);
}
