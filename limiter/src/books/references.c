#include "books/references.h"

#include "books/descriptors.h"
#include "books/hash_table.h"

static struct ledger backings;      /* by number; `other` says whether it is hidden, `count` whether a pool's */
static struct ledger counts[SORTS]; /* by number, `count` of them */
static struct ledger descriptors;   /* see descriptors.h */
static uint64_t last_number;

void references_forget_all(void) {
    ledger_clear(&backings);
    for (int sort = 0; sort < SORTS; sort++) ledger_clear(&counts[sort]);
    descriptors_forget_all(&descriptors);
}

uint64_t references_begin(struct backing backing) {
    struct ledger_entry entry = {++last_number, backing.bytes, 0, 0, backing.card};
    return ledger_put(&backings, entry) ? last_number : 0;
}

uint64_t references_begin_pool(void) {
    struct ledger_entry entry = {++last_number, 0, 0, 1, 0};
    return ledger_put(&backings, entry) ? last_number : 0;
}

void references_set_pool(uint64_t number, int card, uint64_t bytes) {
    struct ledger_entry entry = ledger_find(&backings, number);
    entry.card = card;
    entry.bytes = bytes;
    if (entry.key != 0) ledger_put(&backings, entry);
}

void references_cancel(uint64_t number) { ledger_take(&backings, number); }

static uint32_t count_of(uint64_t number, enum sort sort) { return ledger_find(&counts[sort], number).count; }

static void count(uint64_t number, enum sort sort, uint32_t more) {
    struct ledger_entry entry = {.key = number, .count = count_of(number, sort) + more};
    if (entry.count != 0)
        ledger_put(&counts[sort], entry);
    else
        ledger_take(&counts[sort], number);
}

void references_add(uint64_t number, enum sort sort) {
    if (ledger_find(&backings, number).key != 0) count(number, sort, 1);
}

static struct backing freed(const struct ledger_entry *backing) {
    bool is_exported = descriptors_forget(&descriptors, backing->key);
    ledger_take(&backings, backing->key);
    uint64_t pool = backing->count ? backing->key : 0;
    return (struct backing){backing->card, backing->bytes, FREED, backing->other != 0, is_exported, pool};
}

/* What has changed since it was looked at last. */
static struct backing look(uint64_t number) {
    struct ledger_entry backing = ledger_find(&backings, number);
    if (backing.key == 0 || (backing.other == 0 && count_of(number, MADE))) return (struct backing){0};
    bool is_open = descriptors_are_open(&descriptors, number);
    bool is_imported = count_of(number, IMPORTED) != 0;
    if (!is_open && !is_imported && !count_of(number, MADE) && !count_of(number, UNSEEN)) return freed(&backing);
    bool is_hidden = !count_of(number, MADE) && (is_open || !is_imported);
    if (is_hidden == (backing.other != 0)) return (struct backing){0};
    backing.other = is_hidden;
    ledger_put(&backings, backing);
    return (struct backing){backing.card, backing.bytes, is_hidden ? HIDDEN : SHOWN, false, false, 0};
}

struct backing references_drop(uint64_t number, enum sort sort) {
    if (count_of(number, sort)) count(number, sort, (uint32_t)-1);
    return look(number);
}

void references_export(uint64_t number, int descriptor) { descriptors_add(&descriptors, descriptor, number); }

uint64_t references_exported(int descriptor) { return descriptors_find(&descriptors, descriptor); }

void references_disown(int descriptor) { descriptors_remove(&descriptors, descriptor); }

struct backing references_sweep(void) {
    struct backing change = {0};
    for (size_t i = 0; descriptors.count && i < backings.size && change.bytes == 0; i++)
        if (backings.entries[i].key != 0) change = look(backings.entries[i].key);
    return change;
}
