/* One allocation from a pool. Only if the pool may have to grow for it is anything reserved; after the driver's call
 * the pool's charge is updated if it has grown.
 *
 * The sequence is `pool_growth_begin`; the driver's call, while `pool_growth_needs_call` says so; unless `is_refused`,
 * `pool_growth_fits`; in every case `pool_growth_end`. The caller holds no lock. */
#ifndef VGPU_HOOKS_POOLS_POOL_GROWTH_H
#define VGPU_HOOKS_POOLS_POOL_GROWTH_H

#include "books/pools/pools.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/charge.h"

struct pool_growth {
    const char *function_name; /* the CUDA function, for log lines */
    struct pool *pool;         /* NULL: not charged. If `pool_growth_fits` was false: where the memory is from */
    CUmemoryPool handle;       /* of `pool` at the beginning: shows whether another pool has taken its entry since */
    struct reservation reservation; /* valid while `is_reserved` */
    uint32_t growths_before;        /* of the pool, before its room was looked for */
    int call_slot;                  /* of charge_begin_call; -1: no call is open */
    bool is_guarded;  /* this thread is inside the pool guard: no pool is destroyed until `pool_growth_end` */
    bool is_reserved; /* growth is charged ahead, and a call is open */
    bool is_refused;  /* over the limit: the driver must not be called */
};

/* Reserves growth if the pool has no room for `bytes`. `is_captured` tells whether work on `stream` is being captured
 * into a graph: then nothing is allocated now, and nothing reserved. `pool` may be NULL. */
struct pool_growth pool_growth_begin(const char *function_name, struct pool *pool, uint64_t bytes,
                                     bool (*is_captured)(CUstream), CUstream stream);

/* Like `pool_growth_begin`, for the current pool of the calling thread's device, which another thread may own. */
struct pool_growth pool_growth_begin_current(const char *function_name, uint64_t bytes, bool (*is_captured)(CUstream),
                                             CUstream stream);

/* Whether the driver is to be called after `calls` calls, of which the last returned `result`: first unless the growth
 * is refused, then as reservation_retry says. */
static inline bool pool_growth_needs_call(struct pool_growth *growth, int calls, CUresult result) {
    return calls == 0 ? !growth->is_refused : reservation_retry(&growth->reservation, result);
}

/* After the driver's call: charges what the pool has grown by. False if `result` is a success that took the container
 * over its limit: the caller frees `pointer`. */
bool pool_growth_fits(struct pool_growth *growth, CUresult result, CUdeviceptr pointer);

/* Leaves the pool guard. */
void pool_growth_end(struct pool_growth *growth);

#endif
