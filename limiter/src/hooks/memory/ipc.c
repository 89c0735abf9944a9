/* Wrappers of CUDA IPC handles. Opening a handle charges nothing: the memory is charged to its owner. If the owner
 * frees it or ends while this process has it open, NVML counts it for this process, which is charged at the next
 * measurement. */
#include "books/pointers/ipc_exports.h"
#include "charge/measure/measured_call.h"
#include "container/container.h"
#include "driver/function_table.h"

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    CUresult result = REAL(cuIpcGetMemHandle)(handle, pointer);
    CUdeviceptr base;
    size_t size;
    if (result == CUDA_SUCCESS && container_is_limited() &&
        REAL(cuMemGetAddressRange_v2)(&base, &size, pointer) == CUDA_SUCCESS)
        ipc_exports_add(base);
    return result;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    CUresult result = REAL(cuIpcCloseMemHandle)(pointer);
    if (result == CUDA_SUCCESS) measured_call_reconcile();
    return result;
}
