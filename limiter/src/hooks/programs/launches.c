/* Wrappers that launch kernels. A launch may wait for a turn (compute/launch_gate.h), and may take local memory
 * (charge/measure/local_memory.h). Over the limit the result is CUDA_ERROR_OUT_OF_MEMORY, as the driver's is on a full
 * card. */
#include "charge/measure/local_memory.h"
#include "charge/reserve/attempt.h"
#include "compute/launch_gate.h"
#include "compute/turn_events.h"
#include "compute/turn_need.h"
#include "driver/function_table.h"

/* Body of a launching wrapper: LAUNCH_WITH_LOCAL_MEMORY, inside the launch gate if turns are needed. `key` names the
 * kind of launch for the gate's estimates, `stream` is the stream as LEGACY or PER_THREAD name it. */
#define LAUNCH_IN_TURN(key, stream, function, name, ...)                                          \
    do {                                                                                          \
        if (!turn_need_is_any()) LAUNCH_WITH_LOCAL_MEMORY(function, name, __VA_ARGS__);           \
        struct launch_pass pass = launch_gate_enter(key, stream);                                 \
        struct attempt attempt = local_memory_begin_launch(#name, local_memory_growth(function)); \
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;                                               \
        if (!attempt.is_refused) do                                                               \
                result = REAL(name)(__VA_ARGS__);                                                 \
            while (attempt_retry(&attempt, result));                                              \
        launch_gate_leave(&pass);                                                                 \
        return local_memory_end_launch(&attempt, result);                                         \
    } while (0)

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
    LAUNCH_IN_TURN(KERNEL_KEY, STREAM_OR_LEGACY(stream), function, cuLaunchKernel, function, grid_x, grid_y, grid_z,
                   block_x, block_y, block_z, shared, stream, parameters, extra);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                    CUstream stream, void **parameters, void **extra) {
    LAUNCH_IN_TURN(KERNEL_KEY, STREAM_OR_PER_THREAD(stream), function, cuLaunchKernel_ptsz, function, grid_x, grid_y,
                   grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    LAUNCH_IN_TURN(key_of_config(config, function), STREAM_OR_LEGACY(stream_of(config)), function, cuLaunchKernelEx,
                   config, function, parameters, extra);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                      void **extra) {
    LAUNCH_IN_TURN(key_of_config(config, function), STREAM_OR_PER_THREAD(stream_of(config)), function,
                   cuLaunchKernelEx_ptsz, config, function, parameters, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void **parameters) {
    LAUNCH_IN_TURN(KERNEL_KEY, STREAM_OR_LEGACY(stream), function, cuLaunchCooperativeKernel, function, grid_x, grid_y,
                   grid_z, block_x, block_y, block_z, shared, stream, parameters);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                               CUstream stream, void **parameters) {
    LAUNCH_IN_TURN(KERNEL_KEY, STREAM_OR_PER_THREAD(stream), function, cuLaunchCooperativeKernel_ptsz, function, grid_x,
                   grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters);
}

/* The functions from before CUDA 4. */
EXPORT CUresult cuLaunch(CUfunction function) {
    LAUNCH_IN_TURN(launch_gate_kernel_key(function, 1, 1, 1, 0, 0, 0), CU_STREAM_LEGACY, function, cuLaunch, function);
}

EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
    LAUNCH_IN_TURN(launch_gate_kernel_key(function, (unsigned)width, (unsigned)height, 1, 0, 0, 0), CU_STREAM_LEGACY,
                   function, cuLaunchGrid, function, width, height);
}

EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    LAUNCH_IN_TURN(launch_gate_kernel_key(function, (unsigned)width, (unsigned)height, 1, 0, 0, 0),
                   STREAM_OR_LEGACY(stream), function, cuLaunchGridAsync, function, width, height, stream);
}
