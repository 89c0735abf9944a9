/* Pools that other processes open. NVML counts a pool with its maker, by what it has reserved, and never with an
 * importer; alone, neither a descriptor nor an import holds anything (measured on an H200, driver 580). What the
 * pointers hold, which are told by value, is in cuda/pool_pieces.c. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

/* What the bytes of an exported pointer are. */
typedef struct {
    uint64_t pool; /* its share */
    uint64_t share;
    uint64_t origin; /* address in the process that made it */
    uint64_t size;
} Exported;

_Static_assert(sizeof(Exported) <= sizeof(CUmemPoolPtrExportData), "fits");

SIM_EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                                     CUmemAllocationHandleType handleType, unsigned long long flags) {
    ENTER();
    REQUIRE(handle_out != NULL && pool != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(pool->exportable, CUDA_ERROR_INVALID_VALUE);
    CUresult result = device_share(pool->device, 0, &pool->share);
    REQUIRE(result == CUDA_SUCCESS, result);
    LEAVE(share_to_descriptor(pool->share, handle_out));
}

SIM_EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                       CUmemAllocationHandleType handleType, unsigned long long flags) {
    SimShare share;
    SimSight sight;
    ENTER();
    REQUIRE(pool_out != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    CUresult result = share_from_descriptor(handle, &sight, &share);
    REQUIRE(result == CUDA_SUCCESS, result);
    CUmemoryPool made = pool_make(device_of_uuid(share.uuid));
    if (made == NULL) {
        ledger_share_drop(share.id, sight);
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->imported = true;
    made->sight = sight;
    made->share = share.id;
    *pool_out = made;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr) {
    ENTER();
    const Allocation *found = allocation_at(ptr);
    REQUIRE(shareData_out != NULL && found != NULL && found->kind == KIND_POOL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(found->pool->share != 0, CUDA_ERROR_INVALID_VALUE);
    Exported exported = {.pool = found->pool->share, .origin = ptr, .size = found->size};
    CUresult result = piece_export(found->pool, found, &exported.share);
    REQUIRE(result == CUDA_SUCCESS, result);
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &exported, sizeof exported);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
    Exported exported;
    CUcontext context;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(ptr_out != NULL && pool != NULL && shareData != NULL && pool->imported, CUDA_ERROR_INVALID_VALUE);
    memcpy(&exported, shareData, sizeof exported);
    REQUIRE(exported.pool == pool->share, CUDA_ERROR_INVALID_VALUE);
    const Allocation *known = allocation_imported(KIND_POOL_IPC, exported.share, exported.origin);
    if (known != NULL && known->pool == pool) {
        *ptr_out = known->address;
        LEAVE(CUDA_SUCCESS);
    }
    result = piece_import(pool, exported.share);
    REQUIRE(result == CUDA_SUCCESS, result);
    Allocation made = {.size = exported.size,
                       .kind = KIND_POOL_IPC,
                       .context = context,
                       .pool = pool,
                       .share = exported.share,
                       .origin = exported.origin};
    result = allocation_add(made, ptr_out);
    pool->imports += result == CUDA_SUCCESS;
    LEAVE(result);
}
