/* The fields of pools. */
#ifndef SIMGPU_CUDA_POOL_POOL_STATE_H
#define SIMGPU_CUDA_POOL_POOL_STATE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "hardware/cards.h"
#include "ledger/shared_memory.h"

struct CUmemPoolHandle_st {
    struct CUmemPoolHandle_st *next;
    bool is_destroyed; /* by the program; the pool is freed with its last allocation */
    CUdevice device;
    bool is_managed; /* its memory is not charged to the card: see cuMemAllocManaged */
    uint64_t used;
    uint64_t used_high;
    uint64_t reserved;
    uint64_t reserved_high;
    uint64_t threshold; /* reserved bytes that a synchronization leaves */
    uint64_t limit;     /* of `used`; 0 = the card's */
    CUmemAccess_flags access[MAX_CARDS];
    bool is_exportable;
    bool is_imported;
    enum attribution attribution; /* of an imported pool's shared memory */
    unsigned imports;             /* allocations of an imported pool */
    uint64_t shared_id;           /* of the pool, once exported or as imported; it has no bytes; 0 = none */
    struct pool_export *exports;  /* exported pointers (pool/exports.h) */
};

#endif
