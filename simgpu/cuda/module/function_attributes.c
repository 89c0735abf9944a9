/* Attributes of functions and kernels: here all are 0 but their local memory. */
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/module/module.h"
#include "hardware/export.h"

EXPORTED CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    ENTER();
    REQUIRE(pi != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(hfunc != NULL && hfunc->library == NULL, CUDA_ERROR_INVALID_HANDLE);
    *pi = attrib == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)hfunc->local : 0;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    CUfunction function = (CUfunction)kernel;
    ENTER();
    REQUIRE(pi != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(function != NULL, CUDA_ERROR_INVALID_HANDLE);
    *pi = attrib == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)function->local : 0;
    LEAVE(CUDA_SUCCESS);
}
