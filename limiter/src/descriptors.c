#include "descriptors.h"

#include <sys/stat.h>

/* A file, as one number; 0 where the descriptor is not open. */
static uint64_t file_of(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 ? ((uint64_t)found.st_ino ^ (uint64_t)found.st_dev << 32) | 1 : 0;
}

/* Never 0, which is the ledger's mark of emptiness. */
static uint64_t key_of(int descriptor) { return (uint64_t)(unsigned)descriptor + 1; }

static int descriptor_of(uint64_t key) { return (int)(key - 1); }

static bool is_open(const struct ledger_entry *entry) { return file_of(descriptor_of(entry->key)) == entry->bytes; }

void descriptors_add(struct ledger *descriptors, int descriptor, uint64_t number) {
    uint64_t file = file_of(descriptor);
    if (file != 0 && number != 0)
        ledger_put(descriptors, (struct ledger_entry){key_of(descriptor), file, number, 0, 0});
}

uint64_t descriptors_find(const struct ledger *descriptors, int descriptor) {
    struct ledger_entry entry = ledger_find(descriptors, key_of(descriptor));
    return entry.key != 0 && is_open(&entry) ? entry.other : 0;
}

void descriptors_remove(struct ledger *descriptors, int descriptor) { ledger_take(descriptors, key_of(descriptor)); }

/* The first entry of that memory, or NULL. */
static const struct ledger_entry *first_of(const struct ledger *descriptors, uint64_t number, bool open) {
    for (size_t i = 0; i < descriptors->size; i++) {
        const struct ledger_entry *entry = &descriptors->entries[i];
        if (entry->key != 0 && entry->other == number && (!open || is_open(entry))) return entry;
    }
    return NULL;
}

bool descriptors_are_open(const struct ledger *descriptors, uint64_t number) {
    return first_of(descriptors, number, true) != NULL;
}

bool descriptors_forget(struct ledger *descriptors, uint64_t number) {
    const struct ledger_entry *entry = first_of(descriptors, number, false);
    bool any = entry != NULL;
    for (; entry; entry = first_of(descriptors, number, false)) ledger_take(descriptors, entry->key);
    return any;
}
