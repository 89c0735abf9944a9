/* The libraries (CUlibrary) whose code and variables the program has not used yet. Takes LOCK_LIBRARIES for a table
 * look-up; the caller holds no lock. */
#ifndef VGPU_HOOKS_PROGRAMS_LIBRARIES_H
#define VGPU_HOOKS_PROGRAMS_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

/* Adds a library that was loaded, or whose first use failed. */
void libraries_add(uint64_t library);

/* Removes a library that is used or unloaded; returns whether it was unused. */
bool libraries_take(uint64_t library);

#endif
