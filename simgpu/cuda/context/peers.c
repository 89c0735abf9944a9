/* Access of a context to the memory of other devices. It takes no memory here. */
#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

/* The bit of the peer's device in the set of the current context. */
static CUresult find(CUcontext peer, CUcontext *current, uint32_t *bit) {
    CUresult result = context_current(current);
    if (result != CUDA_SUCCESS) return result;
    if (!context_is_alive(peer)) return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == (*current)->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    *bit = UINT32_C(1) << peer->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    CUcontext current;
    uint32_t bit;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find(peer, &current, &bit);
    if (result != CUDA_SUCCESS) return result;
    if ((current->peers & bit) != 0) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    current->peers |= bit;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUcontext current;
    uint32_t bit;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = find(peer, &current, &bit);
    if (result != CUDA_SUCCESS) return result;
    if ((current->peers & bit) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    current->peers &= ~bit;
    return CUDA_SUCCESS;
}
