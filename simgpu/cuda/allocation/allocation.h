/* The table of this process's allocations, by address. */
#ifndef SIMGPU_CUDA_ALLOCATION_ALLOCATION_H
#define SIMGPU_CUDA_ALLOCATION_ALLOCATION_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger/shared_memory.h"

enum allocation_kind {
    KIND_DEVICE,   /* whole pages of cuMemAlloc */
    KIND_SMALL,    /* a part of a page */
    KIND_MANAGED,  /* cuMemAllocManaged */
    KIND_HOST,     /* cuMemHostAlloc */
    KIND_POOL,     /* cuMemAllocAsync */
    KIND_IPC,      /* opened by cuIpcOpenMemHandle */
    KIND_POOL_IPC, /* imported by cuMemPoolImportPointer */
    KIND_EXTERNAL, /* a buffer of external memory */
    KIND_GRAPH     /* left by a launched graph */
};

struct allocation {
    CUdeviceptr address;
    uint64_t size;    /* as the program asked */
    uint64_t charged; /* of the card, the page or the pool, as the kind says */
    enum allocation_kind kind;
    CUcontext context; /* NULL once the context ended, for memory of a pool */
    CUmemoryPool pool;
    uint64_t shared_id;           /* 0 = not shared; of KIND_SMALL the page is shared instead */
    enum attribution attribution; /* of memory of other processes */
    CUdeviceptr origin;           /* of memory of other processes: its address in the exporter */
    unsigned opened;              /* of KIND_IPC: how often */
    CUdevice device;
};

struct allocation *allocation_at(CUdeviceptr address);      /* begins at the address; NULL = there is none */
struct allocation *allocation_holding(CUdeviceptr address); /* contains the address; NULL = there is none */
/* The entry of another process's memory; NULL when this process has not opened that memory. */
struct allocation *allocation_imported(enum allocation_kind kind, uint64_t shared_id, CUdeviceptr origin);
/* Calls `visit` for every allocation, from the highest address down; `visit` may remove the one it is given. */
void allocations_visit(void (*visit)(struct allocation *allocation, CUcontext context), CUcontext context);

/* Adds an entry. If its address is 0, it gets one that is free. CUDA_ERROR_OUT_OF_MEMORY when out of host memory. */
CUresult allocation_add(struct allocation allocation, CUdeviceptr *address);
void allocation_remove(struct allocation *allocation);

#endif
