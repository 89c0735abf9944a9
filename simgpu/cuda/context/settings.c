/* Properties of contexts. */
#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

EXPORTED CUresult cuCtxGetFlags(unsigned int *flags) {
    CUcontext context;
    ENTER();
    CUresult result = context_top(&context);
    REQUIRE(flags != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS, result);
    *flags = context->flags;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    ENTER();
    CUresult result = ctx == NULL ? context_top(&ctx) : CUDA_SUCCESS;
    REQUIRE(ctxId != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS && context_is_alive(ctx), CUDA_ERROR_INVALID_CONTEXT);
    *ctxId = ctx->id;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    ENTER();
    CUresult result = ctx == NULL ? context_top(&ctx) : CUDA_SUCCESS;
    REQUIRE(version != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS && context_is_alive(ctx), CUDA_ERROR_INVALID_CONTEXT);
    *version = 3020;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    ENTER();
    if (leastPriority != NULL) {
        *leastPriority = 0;
    }
    if (greatestPriority != NULL) {
        *greatestPriority = -5;
    }
    LEAVE(CUDA_SUCCESS);
}
