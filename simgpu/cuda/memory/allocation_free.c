#include "cuda/memory/allocation_free.h"

#include <sys/mman.h>

#include "cuda/allocation/pages.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/graph/graph_memory.h"
#include "cuda/pool/pool.h"

bool allocation_is_freeable(const struct allocation *allocation) {
    return allocation->kind != KIND_HOST && allocation->kind != KIND_IPC;
}

void allocation_give_back(const struct allocation *allocation) {
    CUdevice device = allocation->device;
    switch (allocation->kind) {
        case KIND_DEVICE:
            device_give_back(device, allocation->charged, allocation->shared_id);
            break;
        case KIND_SMALL:
            pages_give_back(allocation->address, allocation->charged);
            break;
        case KIND_POOL:
            pool_release(allocation->pool, allocation->charged);
            break;
        case KIND_GRAPH:
            graph_memory_release(device, allocation->charged);
            break;
        case KIND_IPC:
        case KIND_EXTERNAL:
            shared_memory_drop(allocation->shared_id, allocation->attribution);
            break;
        case KIND_POOL_IPC:
            allocation->pool->imports--;
            pool_free_if_unused(allocation->pool);
            break;
        case KIND_MANAGED:
        case KIND_HOST:
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): of host memory the address is its pointer */
            munmap((void *)(uintptr_t)allocation->address, allocation->size);
            break;
    }
}

CUresult allocation_free(struct allocation *allocation) {
    allocation_give_back(allocation);
    allocation_remove(allocation);
    return CUDA_SUCCESS;
}

/* Memory of pools and of graphs belongs to the device: it outlives every context, the primary one too (measured on an
 * H200, driver 580). */
static bool ends_with(const struct allocation *allocation, CUcontext context) {
    bool is_of_device = allocation->kind == KIND_POOL || allocation->kind == KIND_GRAPH;
    return !is_of_device && allocation->context == context;
}

static void end_with(struct allocation *allocation, CUcontext context) {
    if (ends_with(allocation, context))
        allocation_free(allocation);
    else if (allocation->context == context)
        allocation->context = NULL;
}

void allocations_free_of(CUcontext context) { allocations_visit(end_with, context); }
