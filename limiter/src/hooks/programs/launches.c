/* Wrappers that launch kernels. A launch may wait for a turn (compute/gate/launch_gate.h), and may take local memory
 * (charge/measure/local_memory.h). Over the limit the result is CUDA_ERROR_OUT_OF_MEMORY, as the driver's is on a full
 * card. */
#include "charge/measure/local_memory.h"
#include "charge/reserve/attempt.h"
#include "compute/gate/launch_gate.h"
#include "compute/gate/turn_need.h"
#include "compute/queue/turn_events.h"
#include "driver/function_table.h"
#include "hooks/programs/space_fault.h"

/* A launch that waited for its turn if turns are needed, and whose local memory is reserved. */
struct launch {
    struct launch_pass pass;
    struct attempt attempt;
};

/* Whether a launch goes straight to the driver: it needs no turn, and no memory. */
static inline bool is_free(bool needs_turn, CUfunction function) {
    return !needs_turn && local_memory_growth(function) == 0;
}

/* `key` names the kind of launch for the gate's estimates, `stream` is the stream as LEGACY or PER_THREAD name it. */
static inline struct launch begin(const char *function_name, bool needs_turn, uint64_t key, CUstream stream,
                                  CUfunction function) {
    struct launch_pass pass = needs_turn ? launch_gate_enter(key, stream, function) : (struct launch_pass){0};
    return (struct launch){pass, local_memory_begin_launch(function_name, local_memory_growth(function))};
}

static inline CUresult end(struct launch *launch, CUresult result) {
    launch_gate_leave(&launch->pass);
    return space_fault_note(local_memory_end_launch(&launch->attempt, result));
}

#define KERNEL_KEY launch_gate_kernel_key(function, grid_x, grid_y, grid_z, block_x, block_y, block_z)

/* A NULL configuration is left to the driver to report. */
static uint64_t key_of_config(const CUlaunchConfig *config, CUfunction function) {
    if (!config) return launch_gate_kernel_key(function, 0, 0, 0, 0, 0, 0);
    return launch_gate_kernel_key(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                  config->blockDimY, config->blockDimZ);
}

static CUstream stream_of(const CUlaunchConfig *config) { return config ? config->hStream : NULL; }

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
                               void **extra) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                     shared, stream, parameters, extra));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch = begin("cuLaunchKernel", needs_turn, KERNEL_KEY, STREAM_OR_LEGACY(stream), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                      parameters, extra);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                    CUstream stream, void **parameters, void **extra) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchKernel_ptsz)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                          shared, stream, parameters, extra));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch = begin("cuLaunchKernel_ptsz", needs_turn, KERNEL_KEY, STREAM_OR_PER_THREAD(stream), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchKernel_ptsz)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                           parameters, extra);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchKernelEx)(config, function, parameters, extra));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch = begin("cuLaunchKernelEx", needs_turn, key_of_config(config, function),
                                 STREAM_OR_LEGACY(stream_of(config)), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchKernelEx)(config, function, parameters, extra);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                      void **extra) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchKernelEx_ptsz)(config, function, parameters, extra));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch = begin("cuLaunchKernelEx_ptsz", needs_turn, key_of_config(config, function),
                                 STREAM_OR_PER_THREAD(stream_of(config)), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchKernelEx_ptsz)(config, function, parameters, extra);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void **parameters) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchCooperativeKernel)(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                                block_z, shared, stream, parameters));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch =
        begin("cuLaunchCooperativeKernel", needs_turn, KERNEL_KEY, STREAM_OR_LEGACY(stream), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchCooperativeKernel)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                                 stream, parameters);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                               CUstream stream, void **parameters) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchCooperativeKernel_ptsz)(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                                     block_z, shared, stream, parameters));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch =
        begin("cuLaunchCooperativeKernel_ptsz", needs_turn, KERNEL_KEY, STREAM_OR_PER_THREAD(stream), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchCooperativeKernel_ptsz)(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                      shared, stream, parameters);
    return end(&launch, result);
}

/* The functions from before CUDA 4. */
EXPORT CUresult cuLaunch(CUfunction function) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function)) return space_fault_note(REAL(cuLaunch)(function));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch =
        begin("cuLaunch", needs_turn, launch_gate_kernel_key(function, 1, 1, 1, 0, 0, 0), CU_STREAM_LEGACY, function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++) result = REAL(cuLaunch)(function);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function)) return space_fault_note(REAL(cuLaunchGrid)(function, width, height));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch = begin("cuLaunchGrid", needs_turn,
                                 launch_gate_kernel_key(function, (unsigned)width, (unsigned)height, 1, 0, 0, 0),
                                 CU_STREAM_LEGACY, function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchGrid)(function, width, height);
    return end(&launch, result);
}

EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    bool needs_turn = turn_need_is_any();
    if (is_free(needs_turn, function))
        return space_fault_note(REAL(cuLaunchGridAsync)(function, width, height, stream));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct launch launch = begin("cuLaunchGridAsync", needs_turn,
                                 launch_gate_kernel_key(function, (unsigned)width, (unsigned)height, 1, 0, 0, 0),
                                 STREAM_OR_LEGACY(stream), function);
    for (int calls = 0; attempt_needs_call(&launch.attempt, calls, result); calls++)
        result = REAL(cuLaunchGridAsync)(function, width, height, stream);
    return end(&launch, result);
}
