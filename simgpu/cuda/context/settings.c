/* Properties of contexts. */
#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

EXPORT CUresult cuCtxGetFlags(unsigned *flags) {
    CUcontext context;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_top(&context);
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return result;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = !context ? context_top(&context) : CUDA_SUCCESS;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS || !context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = !context ? context_top(&context) : CUDA_SUCCESS;
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS || !context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (leastPriority) *leastPriority = 0;
    if (greatestPriority) *greatestPriority = -5;
    return CUDA_SUCCESS;
}
