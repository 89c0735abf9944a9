/* The ends of contexts: the driver frees what was allocated in them, without a word about each pointer. So afterwards
 * it is asked about every pointer that we hold, and what it no longer knows is taken back. */
#include <stdlib.h>

#include "charge.h"
#include "holdings.h"
#include "hooks.h"

/* Any other error, of a missing context for one, says nothing about the pointer. */
static bool is_gone(CUdeviceptr pointer) {
    CUdeviceptr base;
    size_t size;
    CUresult result = REAL(cuMemGetAddressRange_v2)(&base, &size, pointer);
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_FOUND;
}

static void take_back(CUdeviceptr pointer) {
    struct holding holding;
    if (holdings_take(pointer, &holding) && holding.bytes) charge_release(holding.card, holding.bytes);
}

static CUresult settle(CUresult result) {
    if (result != CUDA_SUCCESS || !charge_is_limited() || !hooks_has(FN_cuMemGetAddressRange_v2)) return result;
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
