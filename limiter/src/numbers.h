/* Units of time, and the lesser and the greater of two numbers. */
#ifndef VGPU_NUMBERS_H
#define VGPU_NUMBERS_H

#include <stdint.h>

#define NS_PER_US     1000ULL
#define NS_PER_MS     1000000ULL
#define NS_PER_SECOND 1000000000ULL

static inline uint64_t lesser(uint64_t one, uint64_t other) { return one < other ? one : other; }

static inline uint64_t greater(uint64_t one, uint64_t other) { return one > other ? one : other; }

#endif
