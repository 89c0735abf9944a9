/* Kernel launches. */
#include "cuda/context/limits.h"
#include "cuda/context/local_memory.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/module/kernel_name.h"
#include "cuda/module/module.h"
#include "cuda/queue/context_work.h"
#include "cuda/queue/stream_state.h"
#include "cuda/queue/stream_waits.h"
#include "cuda/stream/stream.h"
#include "hardware/clock.h"
#include "hardware/export.h"

/* ns of work of a launch. */
static uint64_t work_of(CUfunction function, void *const *parameters) {
    bool is_loop = function->iteration_ns != 0 && parameters && parameters[0];
    uint64_t own = is_loop ? *(const uint32_t *)parameters[0] * function->iteration_ns : function->duration_ns;
    uint64_t warming = function->warming_ns;
    function->warming_ns = 0;
    return own + warming;
}

/* A kernel that spins holds back its stream, and no other one. Other work of the card goes on beside it. */
static CUresult spin(CUfunction function, CUstream stream, void *const *parameters) {
    if (!kernel_spins(function->name) || !parameters) return CUDA_SUCCESS;
    CUstream found = stream_find(stream);
    if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
    return stream_waits_add_spin(found, *(uint32_t *const *)parameters[0], *(const uint32_t *)parameters[1],
                                 kernel_spin_timeout_ns(function->name));
}

static CUresult run(CUfunction function, CUstream stream, void *const *parameters) {
    uint32_t ranks = parameters ? kernel_ranks(function->name) : 0;
    if (ranks == 0 || ranks > COLLECTIVE_RANKS) return stream_run(stream, work_of(function, parameters));
    CUstream found = stream_find(stream);
    if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
    struct collective_key key = {
        .group = *(const uint64_t *)parameters[0], .round = *(const uint32_t *)parameters[1], .ranks = ranks};
    return stream_add_collective(found, key, work_of(function, parameters));
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
    result = spin(function, stream, parameters);
    if (result != CUDA_SUCCESS) return result;
    CUstream found = stream_find(stream);
    if (found) found->fills = kernel_fills(function->name);
    function_load(function);
    clock_pass_ns(kernel_launching_ns(function->name));
    result = run(function, stream, parameters);
    if (result == CUDA_SUCCESS && kernel_faults(function->name)) driver_fault();
    return result;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared_size, CUstream stream,
                               void **parameters, void **extra) {
    (void)shared_size;
    (void)extra;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0) return CUDA_ERROR_INVALID_VALUE;
    if (block_x == 0 || block_y == 0 || block_z == 0) return CUDA_ERROR_INVALID_VALUE;
    return launch(f, stream, parameters);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra) {
    (void)extra;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    return launch(f, config->hStream, parameters);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_size,
                                          CUstream stream, void **parameters) {
    return cuLaunchKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size, stream, parameters, NULL);
}
