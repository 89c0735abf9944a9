/* Pools that other processes open. NVML counts the memory that a pool reserved with the process that made the pool, and
 * never with an importer. A descriptor or an import of the pool alone holds no memory (measured on an H200, driver
 * 580); pool/exports.c says what exported pointers hold. */
#include <assert.h>
#include <string.h>

#include "cuda/allocation/allocation.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/pool/exports.h"
#include "cuda/pool/pool.h"
#include "hardware/export.h"

/* The content of an exported pointer. */
struct exported_pointer {
    uint64_t pool_id;   /* id of the pool's shared memory */
    uint64_t shared_id; /* id of the pointer's shared memory */
    uint64_t origin;    /* address in the exporter */
    uint64_t size;
};

static_assert(sizeof(struct exported_pointer) <= sizeof(CUmemPoolPtrExportData), "the content fits");

EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!handle || !pool || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (!pool->is_exportable) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = device_share(pool->device, 0, &pool->shared_id);
    if (result != CUDA_SUCCESS) return result;
    return shared_memory_export(pool->shared_id, handle);
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type,
                                                   unsigned long long flags) {
    struct shared_memory shared;
    enum attribution attribution;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pool || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = shared_memory_import((int)(intptr_t)handle, &attribution, &shared);
    if (result != CUDA_SUCCESS) return result;
    CUmemoryPool made = pool_make(device_of_uuid(shared.uuid));
    if (!made) {
        shared_memory_drop(shared.id, attribution);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->is_imported = true;
    made->attribution = attribution;
    made->shared_id = shared.id;
    *pool = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct allocation *found = allocation_at(address);
    if (!data || !found || found->kind != KIND_POOL) return CUDA_ERROR_INVALID_VALUE;
    if (found->pool->shared_id == 0) return CUDA_ERROR_INVALID_VALUE;
    struct exported_pointer exported = {.pool_id = found->pool->shared_id, .origin = address, .size = found->size};
    CUresult result = pool_export_add(found->pool, found, &exported.shared_id);
    if (result != CUDA_SUCCESS) return result;
    memset(data, 0, sizeof *data);
    memcpy(data, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    struct exported_pointer exported;
    CUcontext context;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!address || !pool || !data || !pool->is_imported) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&exported, data, sizeof exported);
    if (exported.pool_id != pool->shared_id) return CUDA_ERROR_INVALID_VALUE;
    const struct allocation *known = allocation_imported(KIND_POOL_IPC, exported.shared_id, exported.origin);
    if (known && known->pool == pool) {
        *address = known->address;
        return CUDA_SUCCESS;
    }
    result = pool_export_import(pool, exported.shared_id);
    if (result != CUDA_SUCCESS) return result;
    struct allocation made = {.size = exported.size,
                              .kind = KIND_POOL_IPC,
                              .context = context,
                              .pool = pool,
                              .shared_id = exported.shared_id,
                              .origin = exported.origin};
    result = allocation_add(made, address);
    pool->imports += result == CUDA_SUCCESS;
    return result;
}
