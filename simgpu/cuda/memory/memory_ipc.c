/* IPC handles of cuMemAlloc's memory. Any process may open the handle while a process holds the memory. */
#include "cuda/allocation/allocation.h"
#include "cuda/allocation/pages.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/memory/allocation_free.h"
#include "hardware/export.h"

#include <string.h>

/* The content of a handle. */
typedef struct {
    uint64_t shared_id;
    uint64_t origin; /* address in the exporter */
    uint64_t size;
} Exported;

_Static_assert(sizeof(Exported) <= sizeof(CUipcMemHandle), "the content fits a handle");

static bool is_exportable(const Allocation *allocation) {
    return allocation->kind == KIND_DEVICE || allocation->kind == KIND_SMALL;
}

static CUresult share(const Allocation *allocation, uint64_t *shared_id) {
    if (allocation->kind == KIND_SMALL) {
        return page_share(allocation->address, shared_id);
    }
    return device_share(allocation->context->device, allocation->charged, shared_id);
}

EXPORTED CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    Allocation *found = allocation_holding(dptr); /* any address of an allocation gives the same handle */
    if (pHandle == NULL || found == NULL || !is_exportable(found)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t shared_id = found->shared_id;
    CUresult result = share(found, &shared_id);
    if (result != CUDA_SUCCESS) return result;
    found->shared_id = found->kind == KIND_DEVICE ? shared_id : 0;
    Exported exported = {.shared_id = shared_id, .origin = found->address, .size = found->size};
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

/* Whether this process exported the handle: a real driver refuses to open it there. */
static bool is_own_export(const Exported *exported) {
    const Allocation *found = allocation_at(exported->origin);
    if (found == NULL) {
        return false;
    }
    uint64_t shared_id = found->kind == KIND_SMALL ? page_shared_id(found->address) : found->shared_id;
    return is_exportable(found) && shared_id == exported->shared_id;
}

static CUresult open_first(CUdeviceptr *out, const Exported *exported, CUcontext context) {
    SharedMemory shared;
    if (!shared_memory_hold(exported->shared_id, ATTRIBUTED, &shared)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Allocation made = {.size = exported->size,
                       .kind = KIND_IPC,
                       .context = context,
                       .shared_id = exported->shared_id,
                       .attribution = ATTRIBUTED,
                       .origin = exported->origin,
                       .opened = 1};
    CUresult result = device_of_uuid(shared.uuid) < 0 ? CUDA_ERROR_INVALID_DEVICE : allocation_add(made, out);
    if (result != CUDA_SUCCESS) {
        shared_memory_drop(exported->shared_id, ATTRIBUTED);
    }
    return result;
}

static CUresult open_handle(CUdeviceptr *pdptr, const CUipcMemHandle *handle, unsigned flags) {
    Exported exported;
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (pdptr == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&exported, handle, sizeof exported);
    if (is_own_export(&exported)) return CUDA_ERROR_INVALID_CONTEXT;
    Allocation *again = allocation_imported(KIND_IPC, exported.shared_id, exported.origin);
    if (again == NULL) {
        return open_first(pdptr, &exported, context);
    }
    again->opened++;
    *pdptr = again->address;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return open_handle(pdptr, &handle, Flags);
}

EXPORTED CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return open_handle(pdptr, &handle, Flags);
}

EXPORTED CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    Allocation *found = allocation_at(dptr);
    if (found == NULL || found->kind != KIND_IPC) return CUDA_ERROR_INVALID_VALUE;
    return --found->opened > 0 ? CUDA_SUCCESS : allocation_free(found);
}
