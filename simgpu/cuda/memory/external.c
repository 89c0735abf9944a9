/* External memory, which a real program shares with Vulkan or another API. Here the other API is another process of the
 * simulated driver: the descriptor is one that it exported. */
#include <stdlib.h>
#include <unistd.h>

#include "cuda/allocation/allocation.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

struct CUextMemory_st {
    struct CUextMemory_st *next;
    struct shared_memory shared;
    enum attribution attribution;
    uint64_t size; /* as the program says */
};

static CUexternalMemory imported;

EXPORT CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
                                       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
    struct shared_memory shared;
    enum attribution attribution;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!extMem_out || !memHandleDesc) return CUDA_ERROR_INVALID_VALUE;
    if (memHandleDesc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
    int descriptor = memHandleDesc->handle.fd;
    CUresult result = shared_memory_import(descriptor, &attribution, &shared);
    if (result != CUDA_SUCCESS) return result;
    CUexternalMemory made = memHandleDesc->size <= shared.bytes ? malloc(sizeof *made) : NULL;
    if (!made) {
        shared_memory_drop(shared.id, attribution);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *made = (struct CUextMemory_st){
        .next = imported, .shared = shared, .attribution = attribution, .size = memHandleDesc->size};
    imported = made;
    close(descriptor); /* an import consumes the descriptor */
    *extMem_out = made;
    return CUDA_SUCCESS;
}

static CUexternalMemory *link_of(CUexternalMemory memory) {
    CUexternalMemory *link = &imported;
    while (*link && *link != memory) link = &(*link)->next;
    return link;
}

/* The buffer outlives the import; the program frees it with cuMemFree. */
EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc) {
    CUcontext context;
    struct shared_memory shared;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!extMem || *link_of(extMem) != extMem) return CUDA_ERROR_INVALID_HANDLE;
    if (!devPtr || !bufferDesc || bufferDesc->flags != 0) return CUDA_ERROR_INVALID_VALUE;
    bool fits = bufferDesc->offset <= extMem->size && bufferDesc->size <= extMem->size - bufferDesc->offset;
    if (!fits || bufferDesc->size == 0) return CUDA_ERROR_INVALID_VALUE;
    enum attribution attribution = extMem->attribution == ATTRIBUTED
                                       ? ATTRIBUTED
                                       : UNATTRIBUTED; /* a buffer of the process's own memory is not attributed */
    if (!shared_memory_hold(extMem->shared.id, attribution, &shared)) return CUDA_ERROR_INVALID_HANDLE;
    struct allocation made = {.size = bufferDesc->size,
                              .kind = KIND_EXTERNAL,
                              .context = context,
                              .shared_id = shared.id,
                              .attribution = attribution};
    result = allocation_add(made, devPtr);
    if (result != CUDA_SUCCESS) shared_memory_drop(shared.id, attribution);
    return result;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory extMem) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUexternalMemory *link = link_of(extMem);
    if (!extMem || *link != extMem) return CUDA_ERROR_INVALID_HANDLE;
    *link = extMem->next;
    shared_memory_drop(extMem->shared.id, extMem->attribution);
    free(extMem);
    return CUDA_SUCCESS;
}
