#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/stream_await.h"
#include "hardware/export.h"

static CUresult synchronize(CUcontext context) {
    CUresult result = !context ? context_top(&context) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
    if (!context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    context = context->owner ? context->owner : context;
    if (!context_is_alive(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    CUdevice device = context->device;
    context_await(context);
    pools_trim(device);
    return driver_state();
}

EXPORT CUresult cuCtxSynchronize(void) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return synchronize(NULL);
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return synchronize(context);
}
