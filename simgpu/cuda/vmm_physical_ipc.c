/* Physical memory by handle, sent to other processes as a file descriptor. */
#define _GNU_SOURCE
#include "vmm_physical.h"

SIM_EXPORT CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                                 CUmemAllocationHandleType handleType, unsigned long long flags) {
    ENTER();
    Physical *physical = physical_of(handle);
    REQUIRE(shareableHandle != NULL && physical != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(physical->multicast == NULL, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE((physical->properties.requestedHandleTypes & handleType) != 0, CUDA_ERROR_INVALID_VALUE);
    CUresult result = device_share(physical->properties.location.id, physical->size, &physical->share);
    REQUIRE(result == CUDA_SUCCESS, result);
    LEAVE(share_to_descriptor(physical->share, shareableHandle));
}

SIM_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                                   CUmemAllocationHandleType shHandleType) {
    SimShare share;
    SimSight sight;
    ENTER();
    REQUIRE(handle != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    CUresult result = share_from_descriptor(osHandle, &sight, &share);
    REQUIRE(result == CUDA_SUCCESS, result);
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = shHandleType,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_of_uuid(share.uuid)},
    };
    Physical *made = physical_make(&properties, share.bytes, share.id);
    if (made == NULL) {
        ledger_share_drop(share.id, sight);
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->sight = sight;
    *handle = (uintptr_t)made;
    LEAVE(CUDA_SUCCESS);
}
