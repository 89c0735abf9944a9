/* Units of time, and the arithmetic that several files need. */
#ifndef VGPU_COMMON_ARITHMETIC_H
#define VGPU_COMMON_ARITHMETIC_H

#include <stdint.h>

#define NS_PER_US     1000ULL
#define NS_PER_MS     1000000ULL
#define NS_PER_SECOND 1000000000ULL

static inline uint64_t min_u64(uint64_t one, uint64_t other) { return one < other ? one : other; }

static inline uint64_t max_u64(uint64_t one, uint64_t other) { return one > other ? one : other; }

/* Never past what the type holds. */
static inline uint64_t saturating_add(uint64_t one, uint64_t other) {
    return other > UINT64_MAX - one ? UINT64_MAX : one + other;
}

/* A hash that another number goes into. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
}

#endif
