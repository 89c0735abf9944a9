/* Sizes of arrays and mipmapped arrays, by the driver's handle, so that the charge is known when they are destroyed.
 * Every function takes LOCK_ARRAY_RECORDS. Pure apart from that. */
#ifndef VGPU_BOOKS_ARRAYS_ARRAY_RECORDS_H
#define VGPU_BOOKS_ARRAYS_ARRAY_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

struct array_record {
    int card; /* the region's row */
    int device;
    uint64_t bytes; /* what the array requires, as the driver says; the caller's rule makes a charge of it */
};

/* Adds a record; false where malloc fails. A record with this handle is replaced: its array must have ended unseen. */
bool array_records_add(uint64_t handle, struct array_record record);

/* Removes a record; false where the handle is unknown. */
bool array_records_take(uint64_t handle, struct array_record *record);

#endif
