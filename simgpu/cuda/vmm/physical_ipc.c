/* Physical memory sent to other processes as a file descriptor. */
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/vmm/physical.h"
#include "hardware/export.h"

EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type, unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    struct physical *physical = physical_of(handle);
    if (!out || !physical || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (physical->multicast) return CUDA_ERROR_NOT_SUPPORTED;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if ((physical->properties.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = device_share(physical->properties.location.id, physical->size, &physical->shared_id);
    if (result != CUDA_SUCCESS) return result;
    return shared_memory_export(physical->shared_id, out);
}

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *descriptor,
                                               CUmemAllocationHandleType type) {
    struct shared_memory shared;
    enum attribution attribution;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = shared_memory_import((int)(intptr_t)descriptor, &attribution, &shared);
    if (result != CUDA_SUCCESS) return result;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = type,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_of_uuid(shared.uuid)},
    };
    struct physical *made = physical_make(&properties, shared.bytes, shared.id);
    if (!made) {
        shared_memory_drop(shared.id, attribution);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->attribution = attribution;
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}
