#include "driver/primary_context.h"

#include "driver/function_table.h"

bool primary_context_is_active(CUdevice device) {
    unsigned flags;
    int is_active = 0;
    return REAL(cuDevicePrimaryCtxGetState)(device, &flags, &is_active) == CUDA_SUCCESS && is_active;
}

CUresult primary_context_release(CUdevice device) {
    return functions_has(FN_cuDevicePrimaryCtxRelease_v2) ? REAL(cuDevicePrimaryCtxRelease_v2)(device)
                                                          : REAL(cuDevicePrimaryCtxRelease)(device);
}
