/* Small arrays share chunks of GRANULE bytes, in the order in which they come (measured on an H200, driver 580): so
 * many are charged what they take together, in whole chunks. Where freed ones leave holes the driver holds more than
 * that, and the next measurement says so. Pure. */
#ifndef VGPU_SHELVES_H
#define VGPU_SHELVES_H

#include <stdint.h>

/* An array of those bytes more on a device, or one less: by how much the charge grows or shrinks. */
uint64_t shelves_add(int device, uint64_t bytes);
uint64_t shelves_remove(int device, uint64_t bytes);

/* In the child of a fork, which holds nothing. */
void shelves_forget_all(void);

#endif
