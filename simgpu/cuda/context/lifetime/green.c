/* Green contexts. Each has a part of the device's multiprocessors and streams of its own, and takes memory from the
 * device's primary context. Several green contexts may have the same multiprocessors. */
#include <stdlib.h>

#include "cuda/context/context.h"
#include "cuda/context/lifetime/lifetime.h"
#include "cuda/context/lifetime/primary.h"
#include "cuda/device/devices.h"
#include "cuda/device/resources.h"
#include "cuda/driver/driver.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

struct CUgreenCtx_st {
    struct CUgreenCtx_st *next;
    CUcontext context;
    CUdevResource resource;
};

static CUgreenCtx greens;

static CUgreenCtx *link_of(CUgreenCtx green) {
    CUgreenCtx *link = &greens;
    while (*link && *link != green) link = &(*link)->next;
    return link;
}

static bool exists(CUgreenCtx green) { return green && *link_of(green) == green; }

/* NULL for a context that is not green. */
static CUgreenCtx green_of(CUcontext context) {
    CUgreenCtx green = greens;
    while (green && green->context != context) green = green->next;
    return green;
}

static CUresult make(CUgreenCtx *out, CUdevice dev, const CUdevResource *resource) {
    CUcontext primary;
    CUresult result = primary_retain(dev, &primary);
    if (result != CUDA_SUCCESS) return result;
    CUgreenCtx made = malloc(sizeof *made);
    CUcontext context = context_add(&(struct CUctx_st){.device = dev, .owner = primary});
    if (!made || !context) {
        primary_release(dev);
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUgreenCtx_st){.next = greens, .context = context, .resource = *resource};
    greens = made;
    *out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!context || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    return make(context, device, described_resource(description));
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!exists(context)) return CUDA_ERROR_INVALID_CONTEXT;
    CUgreenCtx *link = link_of(context);
    CUdevice device = context->context->device;
    *link = context->next;
    context_destroy(context->context);
    primary_release(device);
    free(context);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(green)) return CUDA_ERROR_INVALID_CONTEXT;
    *context = green->context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource *resource, CUdevResourceType type) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (!exists(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *resource = context->resource;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, CUdevResourceType type) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result = !context ? context_top(&context) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS || !context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    CUgreenCtx green = green_of(context);
    *resource = green ? green->resource : device_resource_whole();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(green)) return CUDA_ERROR_INVALID_CONTEXT;
    *id = green->context->id;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority) {
    (void)priority;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!exists(green)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_is_alive(green->context->owner)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!stream || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    return stream_make(stream, green->context->owner, flags);
}
