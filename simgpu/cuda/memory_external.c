/* Memory of another API. The other API is another process of the simulated driver: its exported descriptor stands for
 * Vulkan's. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <unistd.h>

struct CUextMemory_st {
    struct CUextMemory_st *next;
    SimShare share;
    SimSight sight;
    uint64_t size; /* as the program told it */
};

static CUexternalMemory imported;

SIM_EXPORT CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
                                           const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
    SimShare share;
    SimSight sight;
    ENTER();
    REQUIRE(extMem_out != NULL && memHandleDesc != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(memHandleDesc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, CUDA_ERROR_NOT_SUPPORTED);
    int descriptor = memHandleDesc->handle.fd;
    CUresult result = share_from_descriptor((void *)(intptr_t)descriptor, &sight, &share);
    REQUIRE(result == CUDA_SUCCESS, result);
    CUexternalMemory made = memHandleDesc->size <= share.bytes ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        ledger_share_drop(share.id, sight);
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    }
    *made = (struct CUextMemory_st){.next = imported, .share = share, .sight = sight, .size = memHandleDesc->size};
    imported = made;
    (void)close(descriptor); /* it is the driver's from now on */
    *extMem_out = made;
    LEAVE(CUDA_SUCCESS);
}

static CUexternalMemory *link_of(CUexternalMemory memory) {
    CUexternalMemory *link = &imported;
    while (*link != NULL && *link != memory) {
        link = &(*link)->next;
    }
    return link;
}

/* The buffer is the program's to free, and outlives the import. */
SIM_EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc) {
    CUcontext context;
    SimShare share;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(extMem != NULL && *link_of(extMem) == extMem, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(devPtr != NULL && bufferDesc != NULL && bufferDesc->flags == 0, CUDA_ERROR_INVALID_VALUE);
    bool fits = bufferDesc->offset <= extMem->size && bufferDesc->size <= extMem->size - bufferDesc->offset;
    REQUIRE(fits && bufferDesc->size > 0, CUDA_ERROR_INVALID_VALUE);
    SimSight sight = extMem->sight == SEEN ? SEEN : UNSEEN; /* of its own memory a buffer is not seen */
    REQUIRE(ledger_share_hold(extMem->share.id, sight, &share), CUDA_ERROR_INVALID_HANDLE);
    Allocation made = {
        .size = bufferDesc->size, .kind = KIND_EXTERNAL, .context = context, .share = share.id, .sight = sight};
    result = allocation_add(made, devPtr);
    if (result != CUDA_SUCCESS) {
        ledger_share_drop(share.id, sight);
    }
    LEAVE(result);
}

SIM_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory extMem) {
    ENTER();
    CUexternalMemory *link = link_of(extMem);
    REQUIRE(extMem != NULL && *link == extMem, CUDA_ERROR_INVALID_HANDLE);
    *link = extMem->next;
    ledger_share_drop(extMem->share.id, extMem->sight);
    free(extMem);
    LEAVE(CUDA_SUCCESS);
}
