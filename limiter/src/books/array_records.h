/* What was charged for things that the driver names by a handle and that are no pointers: arrays. Pure but for its own
 * lock. */
#ifndef VGPU_BOOKS_ARRAY_RECORDS_H
#define VGPU_BOOKS_ARRAY_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

struct array_record {
    int card;
    int device;
    uint64_t bytes; /* asked of the driver; what is charged for it is the caller's rule */
};

/* False when memory is out. A handle that is there already is a new thing's: the former one went unseen. */
bool array_records_add(uint64_t handle, struct array_record array_record);

/* Removes it; false where the handle is unknown. */
bool array_records_take(uint64_t handle, struct array_record *array_record);

#endif
