/* Sizes in bytes. */
#ifndef SIMGPU_HARDWARE_UNITS_H
#define SIMGPU_HARDWARE_UNITS_H

#include <stdint.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

/* The smallest multiple of `unit` that is not less than `value`. */
static inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

#endif
