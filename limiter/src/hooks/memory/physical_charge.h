/* Applies changes of physical memory (books/physical/physical_memory.h) to this process's charge. The caller holds no
 * lock. */
#ifndef VGPU_HOOKS_MEMORY_PHYSICAL_CHARGE_H
#define VGPU_HOOKS_MEMORY_PHYSICAL_CHARGE_H

#include "books/physical/physical_memory.h"
#include "charge/reserve/memory_class.h"

/* Releases memory whose last reference has ended, and marks memory that NVML has ceased to count, or counts again.
 * Nothing happens if `change.bytes` is 0. The calling thread has a call open (charge/reserve/charge.h). */
void physical_charge_apply(struct physical_memory change);

/* Corrects by releasing memory whose last reference was an exported descriptor that has been closed. */
extern const struct memory_class physical_memory_class;

#endif
