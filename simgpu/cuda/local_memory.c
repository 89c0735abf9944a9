/* Local memory. A kernel's threads need as many bytes of it as its name says ("local16384_busy_10"; none without). A
 * context has FIRST for each thread that the card can hold, as part of its overhead, and more from the first launch on,
 * or a graph's instantiation, of a kernel that needs more; its stack size is that then, and here never comes back. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define FIRST   1024
#define THREADS (UINT64_C(132) * 2048) /* what cuda/device_attributes.c says a card can hold */
#define PREFIX  "local"

static uint64_t stack_of(CUcontext context) { return context->stack > 0 ? context->stack : FIRST; }

uint64_t local_bytes(const char *kernel) {
    bool named = strncmp(kernel, PREFIX, sizeof PREFIX - 1) == 0;
    return named ? round_up(strtoull(kernel + sizeof PREFIX - 1, NULL, 10), 16) : 0;
}

CUresult local_grow(CUcontext context, uint64_t bytes) {
    if (bytes <= stack_of(context)) {
        return CUDA_SUCCESS;
    }
    uint64_t more = round_up((bytes - stack_of(context)) * THREADS, PAGE);
    CUresult result = device_charge(context->device, more);
    if (result == CUDA_SUCCESS) {
        context->overhead += more;
        context->stack = bytes;
    }
    return result;
}

SIM_EXPORT CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    ENTER();
    REQUIRE(pi != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(hfunc != NULL && hfunc->library == NULL, CUDA_ERROR_INVALID_HANDLE);
    *pi = attrib == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)hfunc->local : 0;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    CUfunction function = (CUfunction)kernel;
    ENTER();
    REQUIRE(pi != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(function != NULL, CUDA_ERROR_INVALID_HANDLE);
    *pi = attrib == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? (int)function->local : 0;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
    CUcontext context;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(pvalue != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(limit == CU_LIMIT_STACK_SIZE, CUDA_ERROR_UNSUPPORTED_LIMIT);
    *pvalue = stack_of(context);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    CUcontext context;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(limit == CU_LIMIT_STACK_SIZE, CUDA_ERROR_UNSUPPORTED_LIMIT);
    LEAVE(local_grow(context, value));
}
