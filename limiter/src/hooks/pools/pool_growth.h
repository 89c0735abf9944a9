/* One allocation from a pool: only where the pool grows is anything charged. */
#ifndef VGPU_HOOKS_POOLS_POOL_GROWTH_H
#define VGPU_HOOKS_POOLS_POOL_GROWTH_H

#include "books/pools.h"
#include "charge/charge.h"

struct pool_growth {
    const char *function_name;
    struct pool *pool;   /* NULL: not counted; in the end the one that it came from */
    CUmemoryPool handle; /* there may be another in its place when it is asked */
    struct reservation reservation;
    int call_slot;
    bool is_guarded; /* no pool is destroyed meanwhile */
    bool is_reserved;
    bool is_refused; /* the driver must not be called */
};

/* Before the driver's call: charges ahead where the pool has no room for so many bytes. On a stream whose work is being
 * captured nothing is allocated. */
struct pool_growth pool_growth_begin(const char *function_name, struct pool *pool, uint64_t bytes,
                                     bool (*is_captured)(CUstream), CUstream stream);

/* The same for what is allocated from the current pool, which is another's maybe. */
struct pool_growth pool_growth_begin_current(const char *function_name, uint64_t bytes, bool (*is_captured)(CUstream),
                                             CUstream stream);

/* After it: charges what the pool has grown by. False where that took the container over its limit: then the caller
 * frees what was allocated. */
bool pool_growth_fits(struct pool_growth *growth, CUresult result, CUdeviceptr pointer);

/* After all that. */
void pool_growth_end(struct pool_growth *growth);

#endif
