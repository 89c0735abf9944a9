/* Initialization, and the version of CUDA. */
#include <stddef.h>

#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/mps_client.h"
#include "hardware/export.h"
#include "ledger/attach.h"
#include "ledger/faults.h"
#include "ledger/join.h"

static CUresult initialize(void) {
    CUresult result = driver_is_initialized() ? CUDA_SUCCESS : devices_find();
    if (result == CUDA_SUCCESS && ledger_join() != 0) result = CUDA_ERROR_OPERATING_SYSTEM;
    if (result == CUDA_SUCCESS && !driver_is_initialized()) result = mps_client_connect();
    if (result == CUDA_SUCCESS) driver_set_initialized();
    return result;
}

EXPORT CUresult cuInit(unsigned flags) {
    int injected = fault_injected(__func__);
    if (injected != 0 || flags != 0) return injected != 0 ? (CUresult)injected : CUDA_ERROR_INVALID_VALUE;
    if (ledger_is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    HOLD_DRIVER();
    return initialize();
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    int injected = fault_injected(__func__);
    if (injected != 0 || !version) return injected != 0 ? (CUresult)injected : CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_CUDA_VERSION;
    return CUDA_SUCCESS;
}
