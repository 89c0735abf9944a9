/* The account of physical memory by handle. */
#ifndef VGPU_VMM_H
#define VGPU_VMM_H

#include <stdint.h>

/* An owner of bindings (bindings.h) is no more, in a span. */
void vmm_end_of(uint64_t owner);

#endif
