/* A context has LOCAL_FIRST bytes for each thread that its card can run, as part of its own charge. The first launch or
 * graph instantiation of a kernel that needs more makes it grow, which the stack size shows; here it never shrinks. */
#include "local_memory.h"

#include "context.h"
#include "device_memory.h"
#include "devices.h"
#include "driver.h"
#include "hardware/export.h"
#include "module.h"

#define LOCAL_FIRST 1024
#define THREADS     (UINT64_C(132) * 2048) /* multiprocessors by threads, as device_attributes.c says */

uint64_t local_stack(CUcontext context) { return context->stack > 0 ? context->stack : LOCAL_FIRST; }

CUresult local_grow(CUcontext context, uint64_t bytes) {
    if (bytes <= local_stack(context)) {
        return CUDA_SUCCESS;
    }
    uint64_t more = round_up((bytes - local_stack(context)) * THREADS, PAGE);
    CUresult result = device_charge(context->device, more);
    if (result == CUDA_SUCCESS) {
        context->overhead += more;
        context->stack = bytes;
    }
    return result;
}

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
