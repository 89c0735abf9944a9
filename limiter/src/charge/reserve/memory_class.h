/* Kinds of memory whose charge their own modules correct: physical memory, pools, memory of graphs. Each is a table of
 * functions that its module in hooks/ defines. main/memory_classes.c lists the tables, because charge/ may not include
 * hooks/. The caller of these functions holds no lock. */
#ifndef VGPU_CHARGE_RESERVE_MEMORY_CLASS_H
#define VGPU_CHARGE_RESERVE_MEMORY_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gpu_uuid.h"

/* A function is NULL if its class has nothing to do. */
struct memory_class {
    /* Releases what is charged too much on a card. The calling thread has `own_calls` calls open (see reconcile.h). */
    void (*correct)(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

    /* Has the driver give back idle memory of a card. The calling thread has a call open (charge.h). */
    void (*trim)(const uint8_t uuid[UUID_SIZE]);

    /* Corrects what takes less than a microsecond, before a card's usage is shown to the program. `card` is the
     * region's row. `is_after_reaping`: dead processes have just been looked for, at most ten times a second, so slower
     * checks may be made. */
    void (*refresh)(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping);
};

/* In the order of calling; NULL after the last. */
extern const struct memory_class *const memory_classes[];

#endif
