/* Units of time in nanoseconds, and integer arithmetic that several files need. */
#ifndef VGPU_COMMON_ARITHMETIC_H
#define VGPU_COMMON_ARITHMETIC_H

#include <stdint.h>

#define NS_PER_US     1000ULL
#define NS_PER_MS     1000000ULL
#define NS_PER_SECOND 1000000000ULL

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* a + b, or UINT64_MAX where the sum overflows. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

/* a - b, or 0 where b is larger. */
static inline uint64_t saturating_sub(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* `part` in permille of `whole`, at most `most`; 0 where `whole` is 0. Times in ns do not overflow for 200 days. */
static inline uint32_t permille_of(uint64_t part, uint64_t whole, uint32_t most) {
    return whole ? (uint32_t)min_u64(part * 1000 / whole, most) : 0;
}

/* Mixes another value into a hash. Not cryptographic. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
}

#endif
