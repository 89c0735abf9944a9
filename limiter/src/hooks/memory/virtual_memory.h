/* The account of physical memory by handle. */
#ifndef VGPU_HOOKS_MEMORY_VIRTUAL_MEMORY_H
#define VGPU_HOOKS_MEMORY_VIRTUAL_MEMORY_H

#include <stdint.h>

/* An owner of bindings (bindings.h) is no more, in a span. */
void virtual_memory_end_owner(uint64_t owner);

#endif
