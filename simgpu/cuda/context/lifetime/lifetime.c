#include "cuda/context/lifetime/lifetime.h"

#include <stdlib.h>

#include "cuda/array/array.h"
#include "cuda/array/mipmapped.h"
#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/memory/allocation_free.h"
#include "cuda/module/module.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_work.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

CUresult context_make(CUcontext *out, CUdevice dev, unsigned flags, bool is_primary) {
    struct card card;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (!device_card(dev, &card)) return CUDA_ERROR_UNKNOWN;
    CUresult result = device_charge(dev, card.context);
    if (result != CUDA_SUCCESS) return result;
    *out = context_add(
        &(struct CUctx_st){.device = dev, .flags = flags, .is_primary = is_primary, .overhead = card.context});
    if (*out)
        device_add_contexts(dev, 1);
    else
        device_release(dev, card.context);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void context_destroy(CUcontext context) {
    context_remove(context);
    context_end_work(context);
    arrays_free_of(context);
    mipmaps_free_of(context);
    allocations_free_of(context);
    streams_free_of(context);
    modules_free_of(context);
    pools_trim(context->device);
    device_release(context->device, context->overhead);
    if (!context->owner) device_add_contexts(context->device, -1); /* a green context is part of the primary one */
    free(context);
}

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev) {
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    if (context_stack_is_full()) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = context_make(pctx, dev, flags, false);
    return result == CUDA_SUCCESS ? context_push(*pctx) : result;
}

EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return create(context, flags, device);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return create(context, flags, device);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinities, int affinity_count, unsigned flags,
                               CUdevice device) {
    (void)affinities;
    (void)affinity_count;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return create(context, flags, device);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device) {
    (void)parameters;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return create(context, flags, device);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!context_is_alive(context) || context->is_primary || context->owner) return CUDA_ERROR_INVALID_CONTEXT;
    context_pop_if_top(context);
    context_destroy(context);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
