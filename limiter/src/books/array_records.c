#include "books/array_records.h"

#include <pthread.h>

#include "books/hash_table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hash_table array_records; /* under the mutex: by handle; `other` is the device */

void array_records_lock(void) { pthread_mutex_lock(&mutex); }

void array_records_unlock(void) { pthread_mutex_unlock(&mutex); }

void array_records_forget_all(void) { hash_table_clear(&array_records); }

bool array_records_add(uint64_t handle, struct array_record array_record) {
    struct hash_table_entry entry = {handle, array_record.bytes, (uint64_t)array_record.device, 0, array_record.card};
    array_records_lock();
    bool kept = hash_table_put(&array_records, entry);
    array_records_unlock();
    return kept;
}

bool array_records_take(uint64_t handle, struct array_record *array_record) {
    array_records_lock();
    struct hash_table_entry entry = hash_table_take(&array_records, handle);
    array_records_unlock();
    *array_record = (struct array_record){entry.card, (int)entry.other, entry.bytes};
    return entry.key != 0;
}
