/* IPC handles of cuMemAlloc's memory. Any process may open the handle while a process holds the memory. */
#include <assert.h>
#include <string.h>

#include "cuda/allocation/allocation.h"
#include "cuda/allocation/pages.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/memory/allocation_free.h"
#include "hardware/export.h"

/* The content of a handle. */
struct exported_memory {
    uint64_t shared_id;
    uint64_t origin; /* address in the exporter */
    uint64_t size;
};

static_assert(sizeof(struct exported_memory) <= sizeof(CUipcMemHandle), "the content fits a handle");

static bool is_exportable(const struct allocation *allocation) {
    return allocation->kind == KIND_DEVICE || allocation->kind == KIND_SMALL;
}

static CUresult share(const struct allocation *allocation, uint64_t *shared_id) {
    if (allocation->kind == KIND_SMALL) return page_share(allocation->address, shared_id);
    return device_share(allocation->context->device, allocation->charged, shared_id);
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *array, CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    struct allocation *found = allocation_holding(address); /* any address of an allocation gives the same handle */
    if (!array || !found || !is_exportable(found)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t shared_id = found->shared_id;
    CUresult result = share(found, &shared_id);
    if (result != CUDA_SUCCESS) return result;
    found->shared_id = found->kind == KIND_DEVICE ? shared_id : 0;
    struct exported_memory exported = {.shared_id = shared_id, .origin = found->address, .size = found->size};
    memset(array, 0, sizeof *array);
    memcpy(array, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

/* Whether this process exported the handle: a real driver refuses to open it there. */
static bool is_own_export(const struct exported_memory *exported) {
    const struct allocation *found = allocation_at(exported->origin);
    if (!found) return false;
    uint64_t shared_id = found->kind == KIND_SMALL ? page_shared_id(found->address) : found->shared_id;
    return is_exportable(found) && shared_id == exported->shared_id;
}

static CUresult open_first(CUdeviceptr *out, const struct exported_memory *exported, CUcontext context) {
    struct shared_memory shared;
    if (!shared_memory_hold(exported->shared_id, ATTRIBUTED, &shared)) return CUDA_ERROR_INVALID_VALUE;
    struct allocation made = {.size = exported->size,
                              .kind = KIND_IPC,
                              .context = context,
                              .shared_id = exported->shared_id,
                              .attribution = ATTRIBUTED,
                              .origin = exported->origin,
                              .opened = 1};
    CUresult result = device_of_uuid(shared.uuid) < 0 ? CUDA_ERROR_INVALID_DEVICE : allocation_add(made, out);
    if (result != CUDA_SUCCESS) shared_memory_drop(exported->shared_id, ATTRIBUTED);
    return result;
}

static CUresult open_handle(CUdeviceptr *pdptr, const CUipcMemHandle *handle, unsigned flags) {
    struct exported_memory exported;
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!pdptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&exported, handle, sizeof exported);
    if (is_own_export(&exported)) return CUDA_ERROR_INVALID_CONTEXT;
    struct allocation *again = allocation_imported(KIND_IPC, exported.shared_id, exported.origin);
    if (!again) return open_first(pdptr, &exported, context);
    again->opened++;
    *pdptr = again->address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return open_handle(address, &handle, flags);
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return open_handle(address, &handle, flags);
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    struct allocation *found = allocation_at(address);
    if (!found || found->kind != KIND_IPC) return CUDA_ERROR_INVALID_VALUE;
    return --found->opened > 0 ? CUDA_SUCCESS : allocation_free(found);
}
