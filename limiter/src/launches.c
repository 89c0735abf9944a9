/* Kernels' launches, as far as they take memory: see local.h. Over the limit the answer is CUDA_ERROR_OUT_OF_MEMORY, as
 * the driver's is where the card is full. */
#include "launches.h"

#include "holdings.h"
#include "hooks.h"
#include "settle.h"

struct attempt launches_begin(const char *what, uint64_t growth) {
    CUdevice device;
    if (growth == 0 || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return (struct attempt){.what = what};
    return attempt_begin_on(what, device, round_up(growth, GRANULE));
}

/* Nobody gives the memory back, so nobody remembers the charge: what is measured takes its place. */
CUresult launches_finish(struct attempt *attempt, CUresult result) {
    if (!attempt->is_charged) return result;
    if (!settle_own(attempt->uuid, 1) && result != CUDA_SUCCESS)
        charge_release(attempt->claim.card, attempt->claim.bytes);
    attempt_end(attempt);
    return result;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
                               void **extra) {
    LAUNCH(function, cuLaunchKernel, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
           parameters, extra);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                    CUstream stream, void **parameters, void **extra) {
    LAUNCH(function, cuLaunchKernel_ptsz, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
           parameters, extra);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    LAUNCH(function, cuLaunchKernelEx, config, function, parameters, extra);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                      void **extra) {
    LAUNCH(function, cuLaunchKernelEx_ptsz, config, function, parameters, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void **parameters) {
    LAUNCH(function, cuLaunchCooperativeKernel, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
           stream, parameters);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                               CUstream stream, void **parameters) {
    LAUNCH(function, cuLaunchCooperativeKernel_ptsz, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
           shared, stream, parameters);
}

/* The entries of before CUDA 4. */
EXPORT CUresult cuLaunch(CUfunction function) { LAUNCH(function, cuLaunch, function); }

EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
    LAUNCH(function, cuLaunchGrid, function, width, height);
}

EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    LAUNCH(function, cuLaunchGridAsync, function, width, height, stream);
}
