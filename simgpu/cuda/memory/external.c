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

EXPORT CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *wanted) {
    struct shared_memory shared;
    enum attribution attribution;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!memory || !wanted) return CUDA_ERROR_INVALID_VALUE;
    if (wanted->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
    int descriptor = wanted->handle.fd;
    CUresult result = shared_memory_import(descriptor, &attribution, &shared);
    if (result != CUDA_SUCCESS) return result;
    CUexternalMemory made = wanted->size <= shared.bytes ? malloc(sizeof *made) : NULL;
    if (!made) {
        shared_memory_drop(shared.id, attribution);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *made =
        (struct CUextMemory_st){.next = imported, .shared = shared, .attribution = attribution, .size = wanted->size};
    imported = made;
    close(descriptor); /* an import consumes the descriptor */
    *memory = made;
    return CUDA_SUCCESS;
}

static CUexternalMemory *link_of(CUexternalMemory memory) {
    CUexternalMemory *link = &imported;
    while (*link && *link != memory) link = &(*link)->next;
    return link;
}

/* The buffer outlives the import; the program frees it with cuMemFree. */
EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory memory,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *wanted) {
    CUcontext context;
    struct shared_memory shared;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!memory || *link_of(memory) != memory) return CUDA_ERROR_INVALID_HANDLE;
    if (!devPtr || !wanted || wanted->flags != 0) return CUDA_ERROR_INVALID_VALUE;
    bool fits = wanted->offset <= memory->size && wanted->size <= memory->size - wanted->offset;
    if (!fits || wanted->size == 0) return CUDA_ERROR_INVALID_VALUE;
    enum attribution attribution = memory->attribution == ATTRIBUTED
                                       ? ATTRIBUTED
                                       : UNATTRIBUTED; /* a buffer of the process's own memory is not attributed */
    if (!shared_memory_hold(memory->shared.id, attribution, &shared)) return CUDA_ERROR_INVALID_HANDLE;
    struct allocation made = {.size = wanted->size,
                              .kind = KIND_EXTERNAL,
                              .context = context,
                              .shared_id = shared.id,
                              .attribution = attribution};
    result = allocation_add(made, devPtr);
    if (result != CUDA_SUCCESS) shared_memory_drop(shared.id, attribution);
    return result;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUexternalMemory *link = link_of(memory);
    if (!memory || *link != memory) return CUDA_ERROR_INVALID_HANDLE;
    *link = memory->next;
    shared_memory_drop(memory->shared.id, memory->attribution);
    free(memory);
    return CUDA_SUCCESS;
}
