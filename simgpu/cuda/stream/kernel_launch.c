/* Kernel launches. */
#include "cuda/context/limits.h"
#include "cuda/context/local_memory.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/module/module.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

/* ns of work of a launch, with the loading of the kernel. */
static uint64_t work_of(CUfunction function, void *const *parameters) {
    bool is_loop = function->iteration_ns != 0 && parameters && parameters[0];
    uint64_t own = is_loop ? *(const uint32_t *)parameters[0] * function->iteration_ns : function->duration_ns;
    uint64_t loading = function->loading_ns;
    function->loading_ns = 0;
    return own + loading;
}

static CUresult launch(CUfunction function, CUstream stream, void *const *parameters) {
    if (!stream_context(stream)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result;
    if (capture_takes_kernel(stream, function, &result)) return result;
    result = local_grow(stream_context(stream), function->local);
    if (result != CUDA_SUCCESS) return result;
    result = context_make_heap(stream_context(stream), function->uses_heap);
    if (result != CUDA_SUCCESS) return result;
    return stream_run(stream, work_of(function, parameters));
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ,
                               unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes,
                               CUstream hStream, void **kernelParams, void **extra) {
    (void)sharedMemBytes;
    (void)extra;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (gridDimX == 0 || gridDimY == 0 || gridDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
    if (blockDimX == 0 || blockDimY == 0 || blockDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
    return launch(f, hStream, kernelParams);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    (void)extra;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    return launch(f, config->hStream, kernelParams);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ,
                                          unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ,
                                          unsigned sharedMemBytes, CUstream hStream, void **kernelParams) {
    return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                          kernelParams, NULL);
}
