/* Kinds of memory whose charge only their own module can correct: physical memory by handle, pools, memory of graphs.
 * `charge` knows them by this table alone, which main/memory_classes.c fills: hooks include charge, never the reverse.
 */
#ifndef VGPU_CHARGE_MEMORY_CLASS_H
#define VGPU_CHARGE_MEMORY_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gpu_uuid.h"

/* NULL where there is nothing to do. */
struct memory_class {
    /* Takes back what is charged too much on a card; the caller has `own_calls` calls (charge.h) under way. */
    void (*correct)(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

    /* Has the driver give back what is kept on a card without use; within a call (charge.h). */
    void (*trim)(const uint8_t uuid[UUID_SIZE]);

    /* Before a card's usage is shown: what can be corrected in less than a microsecond. `card` is the region's row;
     * `is_after_reaping`: dead processes were looked for just now, which happens ten times a second at most. */
    void (*refresh)(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping);
};

/* In the order in which they are asked; NULL after the last. */
extern const struct memory_class *const memory_classes[];

#endif
