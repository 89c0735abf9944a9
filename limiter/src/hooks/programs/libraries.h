/* Libraries whose code and variables have not been asked for yet. Pure but for its own lock. */
#ifndef VGPU_HOOKS_PROGRAMS_LIBRARIES_H
#define VGPU_HOOKS_PROGRAMS_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

/* A library was loaded. */
void libraries_add(uint64_t library);

/* Whether it was there; it no longer is. */
bool libraries_take(uint64_t library);

#endif
