/* Limits of contexts, as measured on an H200 with driver 580 (benchmarks/programs/ctx_limits.c): setting the heap's
 * size takes nothing; the first launch of a kernel that calls malloc takes that size and 2 MiB, and then the size is
 * final. */
#include "cuda/context/limits.h"

#include "cuda/context/context.h"
#include "cuda/context/local_memory.h"
#include "cuda/device/device_memory.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"

#define DEFAULT_HEAP    (8 * MIB)
#define LARGEST_HEAP    UINT64_C(17681179680)
#define LARGEST_PENDING UINT64_C(599186)
#define DEFAULT_PENDING 2048
#define DEFAULT_PRINTF  UINT64_C(8650752)
#define LARGEST_PRINTF  (2048 * MIB)
#define DEFAULT_FETCH   64
#define LARGEST_FETCH   128
#define DEFAULT_L2      UINT64_C(11796480)

/* The first and the largest value of a limit; a request for more sets the largest. `largest` is 0 where
 * the limit is not supported. */
static const struct {
    uint64_t initial;
    uint64_t largest;
} ranges[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = {1024, UINT64_MAX},
    [CU_LIMIT_PRINTF_FIFO_SIZE] = {DEFAULT_PRINTF, LARGEST_PRINTF},
    [CU_LIMIT_MALLOC_HEAP_SIZE] = {DEFAULT_HEAP, LARGEST_HEAP},
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = {DEFAULT_PENDING, LARGEST_PENDING},
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = {DEFAULT_FETCH, LARGEST_FETCH},
    [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = {DEFAULT_L2, UINT64_MAX},
};

static bool is_supported(CUlimit limit) { return (unsigned)limit < CU_LIMIT_MAX && ranges[limit].largest > 0; }

static uint64_t limit_of(CUcontext context, CUlimit limit) {
    if (limit == CU_LIMIT_STACK_SIZE) return local_stack(context);
    return context->limits[limit] > 0 ? context->limits[limit] : ranges[limit].initial;
}

CUresult context_make_heap(CUcontext context, bool is_used) {
    if (!is_used || context->has_heap) return CUDA_SUCCESS;
    uint64_t bytes = round_up(limit_of(context, CU_LIMIT_MALLOC_HEAP_SIZE), PAGE) + PAGE;
    CUresult result = device_charge(context->device, bytes);
    if (result == CUDA_SUCCESS) {
        context->overhead += bytes;
        context->has_heap = true;
    }
    return result;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    CUcontext context;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!is_supported(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = limit_of(context, limit);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    CUcontext context;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!is_supported(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_STACK_SIZE) return local_grow(context, value);
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && context->has_heap) return CUDA_ERROR_INVALID_VALUE;
    context->limits[limit] = value < ranges[limit].largest ? value : ranges[limit].largest;
    return CUDA_SUCCESS;
}
