/* External memory, which a real program shares with Vulkan or another API. Here the other API is another process of the
 * simulated driver: the descriptor is one that it exported. */
#include "cuda/allocation/allocation.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

#include <stdlib.h>
#include <unistd.h>

struct CUextMemory_st {
    struct CUextMemory_st *next;
    SharedMemory shared;
    Attribution attribution;
    uint64_t size; /* as the program says */
};

static CUexternalMemory imported;

EXPORTED CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
                                         const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
    SharedMemory shared;
    Attribution attribution;
    ENTER();
    REQUIRE(extMem_out != NULL && memHandleDesc != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(memHandleDesc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, CUDA_ERROR_NOT_SUPPORTED);
    int descriptor = memHandleDesc->handle.fd;
    CUresult result = shared_memory_import(descriptor, &attribution, &shared);
    REQUIRE(result == CUDA_SUCCESS, result);
    CUexternalMemory made = memHandleDesc->size <= shared.bytes ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        shared_memory_drop(shared.id, attribution);
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    }
    *made = (struct CUextMemory_st){
        .next = imported, .shared = shared, .attribution = attribution, .size = memHandleDesc->size};
    imported = made;
    (void)close(descriptor); /* an import consumes the descriptor */
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

/* The buffer outlives the import; the program frees it with cuMemFree. */
EXPORTED CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc) {
    CUcontext context;
    SharedMemory shared;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(extMem != NULL && *link_of(extMem) == extMem, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(devPtr != NULL && bufferDesc != NULL && bufferDesc->flags == 0, CUDA_ERROR_INVALID_VALUE);
    bool fits = bufferDesc->offset <= extMem->size && bufferDesc->size <= extMem->size - bufferDesc->offset;
    REQUIRE(fits && bufferDesc->size > 0, CUDA_ERROR_INVALID_VALUE);
    Attribution attribution = extMem->attribution == ATTRIBUTED
                                  ? ATTRIBUTED
                                  : UNATTRIBUTED; /* a buffer of the process's own memory is not attributed */
    REQUIRE(shared_memory_hold(extMem->shared.id, attribution, &shared), CUDA_ERROR_INVALID_HANDLE);
    Allocation made = {.size = bufferDesc->size,
                       .kind = KIND_EXTERNAL,
                       .context = context,
                       .shared_id = shared.id,
                       .attribution = attribution};
    result = allocation_add(made, devPtr);
    if (result != CUDA_SUCCESS) {
        shared_memory_drop(shared.id, attribution);
    }
    LEAVE(result);
}

EXPORTED CUresult cuDestroyExternalMemory(CUexternalMemory extMem) {
    ENTER();
    CUexternalMemory *link = link_of(extMem);
    REQUIRE(extMem != NULL && *link == extMem, CUDA_ERROR_INVALID_HANDLE);
    *link = extMem->next;
    shared_memory_drop(extMem->shared.id, extMem->attribution);
    free(extMem);
    LEAVE(CUDA_SUCCESS);
}
