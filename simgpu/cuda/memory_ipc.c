/* IPC handles of cuMemAlloc's memory: 64 bytes that any process may open while somebody still has the memory. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

/* What the handle's bytes are. */
typedef struct {
    uint64_t share;
    uint64_t origin; /* address in the process that made it */
    uint64_t size;
} Exported;

_Static_assert(sizeof(Exported) <= sizeof(CUipcMemHandle), "fits a handle");

static bool is_exportable(const Allocation *allocation) {
    return allocation->kind == KIND_DEVICE || allocation->kind == KIND_SMALL;
}

static CUresult share_of(const Allocation *allocation, uint64_t *share) {
    if (allocation->kind == KIND_SMALL) {
        return page_share(allocation->address, share);
    }
    return device_share(allocation->context->device, allocation->charged, share);
}

SIM_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    ENTER();
    Allocation *found = allocation_holding(dptr); /* the same handle for all of it */
    REQUIRE(pHandle != NULL && found != NULL && is_exportable(found), CUDA_ERROR_INVALID_VALUE);
    uint64_t share = found->share;
    CUresult result = share_of(found, &share);
    REQUIRE(result == CUDA_SUCCESS, result);
    found->share = found->kind == KIND_DEVICE ? share : 0;
    Exported exported = {.share = share, .origin = found->address, .size = found->size};
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &exported, sizeof exported);
    LEAVE(CUDA_SUCCESS);
}

/* Whether it is this process's own, which a real driver does not let it open. */
static bool made_here(const Exported *exported) {
    const Allocation *found = allocation_at(exported->origin);
    if (found == NULL) {
        return false;
    }
    uint64_t share = found->kind == KIND_SMALL ? page_share_number(found->address) : found->share;
    return is_exportable(found) && share == exported->share;
}

static CUresult open_first(CUdeviceptr *out, const Exported *exported, CUcontext context) {
    SimShare share;
    if (!ledger_share_hold(exported->share, SEEN, &share)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Allocation made = {.size = exported->size,
                       .kind = KIND_IPC,
                       .context = context,
                       .share = exported->share,
                       .sight = SEEN,
                       .origin = exported->origin,
                       .opened = 1};
    CUresult result = device_of_uuid(share.uuid) < 0 ? CUDA_ERROR_INVALID_DEVICE : allocation_add(made, out);
    if (result != CUDA_SUCCESS) {
        ledger_share_drop(exported->share, SEEN);
    }
    return result;
}

static CUresult open_handle(CUdeviceptr *pdptr, const CUipcMemHandle *handle, unsigned flags) {
    Exported exported;
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(pdptr != NULL && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUDA_ERROR_INVALID_VALUE);
    memcpy(&exported, handle, sizeof exported);
    REQUIRE(!made_here(&exported), CUDA_ERROR_INVALID_CONTEXT);
    Allocation *again = allocation_imported(KIND_IPC, exported.share, exported.origin);
    if (again == NULL) {
        LEAVE(open_first(pdptr, &exported, context));
    }
    again->opened++;
    *pdptr = again->address;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    ENTER();
    return open_handle(pdptr, &handle, Flags);
}

SIM_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    ENTER();
    return open_handle(pdptr, &handle, Flags);
}

SIM_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    ENTER();
    Allocation *found = allocation_at(dptr);
    REQUIRE(found != NULL && found->kind == KIND_IPC, CUDA_ERROR_INVALID_VALUE);
    LEAVE(--found->opened > 0 ? CUDA_SUCCESS : allocation_free(found));
}
