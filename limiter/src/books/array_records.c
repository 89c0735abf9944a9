#include "books/array_records.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table array_records; /* under the mutex: by handle; `other` is the device */

static void forget(void) { hash_table_clear(&array_records); }
FORGET_IN_CHILD(forget);

bool array_records_add(uint64_t handle, struct array_record array_record) {
    struct hash_table_entry entry = {handle, array_record.bytes, (uint64_t)array_record.device, 0, array_record.card};
    lock_take(LOCK_ARRAY_RECORDS);
    bool kept = hash_table_put(&array_records, entry);
    lock_release(LOCK_ARRAY_RECORDS);
    return kept;
}

bool array_records_take(uint64_t handle, struct array_record *array_record) {
    lock_take(LOCK_ARRAY_RECORDS);
    struct hash_table_entry entry = hash_table_take(&array_records, handle);
    lock_release(LOCK_ARRAY_RECORDS);
    *array_record = (struct array_record){entry.card, (int)entry.other, entry.bytes};
    return entry.key != 0;
}
