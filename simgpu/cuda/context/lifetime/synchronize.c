#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_queue.h"
#include "hardware/export.h"

static CUresult synchronize(CUcontext context) {
    CUresult result = context == NULL ? context_top(&context) : CUDA_SUCCESS;
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(context_is_alive(context), CUDA_ERROR_INVALID_CONTEXT);
    context = context->owner != NULL ? context->owner : context;
    REQUIRE(context_is_alive(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUresult forbidden = capture_forbids();
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    CUdevice device = context->device;
    queue_await(context->queue, context->submitted);
    pools_trim(device);
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxSynchronize(void) {
    ENTER();
    return synchronize(NULL);
}

EXPORTED CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    ENTER();
    return synchronize(ctx);
}
