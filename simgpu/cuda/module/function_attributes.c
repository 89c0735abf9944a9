/* Attributes of functions and kernels: here all are 0 but their local memory. */
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/module/module.h"
#include "hardware/export.h"

EXPORT CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pi) return CUDA_ERROR_INVALID_VALUE;
    if (!hfunc || hfunc->library) return CUDA_ERROR_INVALID_HANDLE;
    *pi = attrib == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)hfunc->local : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    CUfunction function = (CUfunction)kernel;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pi) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *pi = attrib == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)function->local : 0;
    return CUDA_SUCCESS;
}
