/* What was charged for things that the driver names by a handle and that are no pointers: arrays. Pure but for its own
 * lock. */
#ifndef VGPU_OUTLAYS_H
#define VGPU_OUTLAYS_H

#include <stdbool.h>
#include <stdint.h>

struct outlay {
    int card;
    int device;
    uint64_t bytes; /* asked of the driver; what is charged for it is the caller's rule */
};

/* False when memory is out. A handle that is there already is a new thing's: the former one went unseen. */
bool outlays_add(uint64_t handle, struct outlay outlay);

/* Removes it; false where the handle is unknown. */
bool outlays_take(uint64_t handle, struct outlay *outlay);

/* Around a fork, and in the child, which holds nothing. */
void outlays_lock(void);
void outlays_unlock(void);
void outlays_forget_all(void);

#endif
