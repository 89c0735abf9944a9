#include "books/handles.h"

#include "books/hash_table.h"

static struct ledger handles; /* `other` is the number, `count` this handle's references, `card` their sort */

void handles_forget_all(void) { ledger_clear(&handles); }

bool handles_add(uint64_t value, struct handle handle) {
    struct ledger_entry entry = ledger_find(&handles, value);
    uint32_t before = entry.key != 0 && entry.other == handle.number ? entry.count : 0;
    return ledger_put(&handles, (struct ledger_entry){value, 0, handle.number, before + 1, (int)handle.sort});
}

struct handle handles_find(uint64_t value) {
    struct ledger_entry entry = ledger_find(&handles, value);
    return (struct handle){entry.other, (enum sort)entry.card};
}

struct handle handles_release(uint64_t value) {
    struct ledger_entry entry = ledger_take(&handles, value);
    if (entry.count > 1) {
        entry.count--;
        ledger_put(&handles, entry);
    }
    return (struct handle){entry.other, (enum sort)entry.card};
}
