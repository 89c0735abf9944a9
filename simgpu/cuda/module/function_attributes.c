/* Attributes of functions and kernels: here all are 0 but their local memory; and their loading. */
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/module/module.h"
#include "hardware/export.h"

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!function || function->library) return CUDA_ERROR_INVALID_HANDLE;
    *value = attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)function->local : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
    CUfunction function = (CUfunction)kernel;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *value = attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)function->local : 0;
    return CUDA_SUCCESS;
}

/* A kernel of a library is loaded by its function in a context. */
EXPORT CUresult cuFuncLoad(CUfunction function) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!function || function->library) return CUDA_ERROR_INVALID_HANDLE;
    function_load(function);
    return CUDA_SUCCESS;
}
