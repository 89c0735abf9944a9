/* The ends of contexts: the driver frees what was allocated in them, without a word about each pointer. So afterwards
 * it is asked about every pointer that we hold, and what it no longer knows is taken back. */
#include <stdlib.h>

#include "charge.h"
#include "holdings.h"
#include "hooks.h"

/* Answered without a current context too (measured on an H200, driver 580); any other error says nothing about the
 * pointer. Memory from the device's pool outlives the context, and is known on. */
static bool is_gone(CUdeviceptr pointer) {
    CUcontext owner;
    return REAL(cuPointerGetAttribute)((void *)&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) ==
           CUDA_ERROR_INVALID_VALUE;
}

static void take_back(CUdeviceptr pointer) {
    struct holding holding;
    if (holdings_take(pointer, &holding) && holding.bytes) charge_release(holding.card, holding.bytes);
}

static CUresult settle(CUresult result) {
    if (result != CUDA_SUCCESS || !charge_is_limited()) return result;
    size_t count;
    uint64_t *pointers = holdings_list(&count);
    for (size_t i = 0; i < count; i++)
        if (is_gone(pointers[i])) take_back(pointers[i]);
    free(pointers);
    return result;
}

EXPORT CUresult cuCtxDestroy(CUcontext context) { return settle(REAL(cuCtxDestroy)(context)); }

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) { return settle(REAL(cuCtxDestroy_v2)(context)); }

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return settle(REAL(cuDevicePrimaryCtxRelease)(device)); }

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return settle(REAL(cuDevicePrimaryCtxRelease_v2)(device));
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) { return settle(REAL(cuDevicePrimaryCtxReset)(device)); }

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return settle(REAL(cuDevicePrimaryCtxReset_v2)(device)); }
