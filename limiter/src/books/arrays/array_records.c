#include "books/arrays/array_records.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table records; /* LOCK_ARRAY_RECORDS; key: the array's handle, value: the device */

static void forget(void) { hash_table_clear(&records); }
FORGET_IN_CHILD(forget);

bool array_records_add(uint64_t handle, struct array_record record) {
    struct hash_table_entry entry = {handle, record.bytes, (uint64_t)record.device, 0, record.card};
    HOLD_LOCK(LOCK_ARRAY_RECORDS);
    return hash_table_put(&records, entry);
}

bool array_records_take(uint64_t handle, struct array_record *record) {
    HOLD_LOCK(LOCK_ARRAY_RECORDS);
    struct hash_table_entry entry = hash_table_take(&records, handle);
    *record = (struct array_record){entry.card, (int)entry.value, entry.bytes};
    return entry.key != 0;
}
