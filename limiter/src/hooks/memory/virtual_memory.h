/* References that arrays, multicast objects and external memory hold to physical memory. */
#ifndef VGPU_HOOKS_MEMORY_VIRTUAL_MEMORY_H
#define VGPU_HOOKS_MEMORY_VIRTUAL_MEMORY_H

#include <stdint.h>

/* Ends all references of an owner (books/physical/bindings.h) that was destroyed, and applies the changes to the
 * charge. The calling thread has a call open (charge/reserve/charge.h) and holds no lock. */
void virtual_memory_end_owner(uint64_t owner);

#endif
