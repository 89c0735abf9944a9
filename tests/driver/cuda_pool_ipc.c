/* Pools that other processes open: the whole of a pool's reserve is shared, and pointers into it are told by value.
 * NVML is taken to count it with an importer once the exporter is gone, as it does with other imports; what an exporter
 * that lives on has freed, an H200 keeps for the importer in nobody's figure, which is not simulated. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <string.h>

/* What the bytes of an exported pointer are. */
typedef struct {
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
    CUresult result = device_share(pool->device, pool->reserved, &pool->share);
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
    Exported exported = {.share = found->pool->share, .origin = ptr, .size = found->size};
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
    REQUIRE(exported.share == pool->share, CUDA_ERROR_INVALID_VALUE);
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
