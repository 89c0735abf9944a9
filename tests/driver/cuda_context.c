/* Contexts: the primary one of each device, others, and each thread's stack of them. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <stdlib.h>

#define STACK 64

static struct CUctx_st *contexts;
static unsigned long long last_id;
static __thread CUcontext stack[STACK];
static __thread unsigned depth;

bool context_alive(CUcontext context) {
    for (struct CUctx_st *each = contexts; each != NULL; each = each->next) {
        if (each == context) {
            return true;
        }
    }
    return false;
}

CUresult context_current(CUcontext *out) {
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *out = stack[depth - 1];
    return context_alive(*out) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult context_make(CUcontext *out, CUdevice dev, unsigned flags, bool primary) {
    Card card;
    if (device_at(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!device_card(dev, &card)) {
        return CUDA_ERROR_UNKNOWN;
    }
    CUresult result = device_charge(dev, card.context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    CUcontext made = calloc(1, sizeof *made);
    if (made == NULL) {
        device_release(dev, card.context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUctx_st){
        .next = contexts, .id = ++last_id, .device = dev, .flags = flags, .primary = primary, .overhead = card.context};
    contexts = made;
    *out = made;
    return CUDA_SUCCESS;
}

static void context_destroy(CUcontext context) {
    struct CUctx_st **link = &contexts;
    while (*link != context) {
        link = &(*link)->next;
    }
    *link = context->next;
    arrays_free_of(context);
    allocations_free_of(context);
    streams_free_of(context);
    modules_free_of(context);
    pools_trim(context->device);
    graph_memory_trim(context->device);
    device_release(context->device, context->overhead);
    free(context);
}

static CUresult push(CUcontext context) {
    if (depth == STACK) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    ENTER();
    Device *device = device_at(dev);
    REQUIRE(pctx != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device != NULL, CUDA_ERROR_INVALID_DEVICE);
    if (device->primary == NULL) {
        CUresult result = context_make(&device->primary, dev, device->primary_flags, true);
        REQUIRE(result == CUDA_SUCCESS, result);
    }
    device->primary_references++;
    *pctx = device->primary;
    LEAVE(CUDA_SUCCESS);
}

static void primary_destroy(Device *device) {
    if (device->primary != NULL) {
        context_destroy(device->primary);
    }
    device->primary = NULL;
    device->primary_references = 0;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    ENTER();
    Device *device = device_at(dev);
    REQUIRE(device != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(device->primary_references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--device->primary_references == 0) {
        primary_destroy(device);
    }
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

SIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    ENTER();
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    primary_destroy(device_at(dev));
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

SIM_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    ENTER();
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    device_at(dev)->primary_flags = flags;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    ENTER();
    REQUIRE(flags != NULL && active != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    *flags = device_at(dev)->primary_flags;
    *active = device_at(dev)->primary != NULL;
    LEAVE(CUDA_SUCCESS);
}

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev) {
    REQUIRE(pctx != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(depth < STACK, CUDA_ERROR_INVALID_VALUE);
    CUresult result = context_make(pctx, dev, flags, false);
    LEAVE(result == CUDA_SUCCESS ? push(*pctx) : result);
}

SIM_EXPORT CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    ENTER();
    return create(pctx, flags, dev);
}

SIM_EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    ENTER();
    return create(pctx, flags, dev);
}

SIM_EXPORT CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                                   CUdevice dev) {
    (void)paramsArray;
    (void)numParams;
    ENTER();
    return create(pctx, flags, dev);
}

SIM_EXPORT CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                                   CUdevice dev) {
    (void)ctxCreateParams;
    ENTER();
    return create(pctx, flags, dev);
}

SIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx) {
    ENTER();
    REQUIRE(context_alive(ctx) && !ctx->primary, CUDA_ERROR_INVALID_CONTEXT);
    if (depth > 0 && stack[depth - 1] == ctx) {
        depth--;
    }
    context_destroy(ctx);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    ENTER();
    REQUIRE(context_alive(ctx), CUDA_ERROR_INVALID_CONTEXT);
    LEAVE(push(ctx));
}

SIM_EXPORT CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    ENTER();
    REQUIRE(depth > 0, CUDA_ERROR_INVALID_CONTEXT);
    depth--;
    if (pctx != NULL) {
        *pctx = stack[depth];
    }
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxPopCurrent(CUcontext *pctx) { return cuCtxPopCurrent_v2(pctx); }

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx) {
    ENTER();
    REQUIRE(ctx == NULL || context_alive(ctx), CUDA_ERROR_INVALID_CONTEXT);
    if (depth > 0) {
        depth--;
    }
    LEAVE(ctx == NULL ? CUDA_SUCCESS : push(ctx));
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    ENTER();
    REQUIRE(pctx != NULL, CUDA_ERROR_INVALID_VALUE);
    *pctx = depth == 0 ? NULL : stack[depth - 1];
    LEAVE(CUDA_SUCCESS);
}

static CUresult device_of(CUdevice *device, CUcontext context) {
    CUresult result = context == NULL ? context_current(&context) : CUDA_SUCCESS;
    REQUIRE(device != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(context_alive(context), CUDA_ERROR_INVALID_CONTEXT);
    *device = context->device;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    ENTER();
    return device_of(device, NULL);
}

SIM_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
    ENTER();
    return device_of(device, ctx);
}

static CUresult synchronise(CUcontext context) {
    CUresult result = context == NULL ? context_current(&context) : CUDA_SUCCESS;
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(context_alive(context), CUDA_ERROR_INVALID_CONTEXT);
    CUdevice device = context->device;
    sleep_until(context->busy_until);
    pools_trim(device);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxSynchronize(void) {
    ENTER();
    return synchronise(NULL);
}

SIM_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    ENTER();
    return synchronise(ctx);
}

SIM_EXPORT CUresult cuCtxGetFlags(unsigned int *flags) {
    CUcontext context;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(flags != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS, result);
    *flags = context->flags;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    ENTER();
    CUresult result = ctx == NULL ? context_current(&ctx) : CUDA_SUCCESS;
    REQUIRE(ctxId != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS && context_alive(ctx), CUDA_ERROR_INVALID_CONTEXT);
    *ctxId = ctx->id;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    ENTER();
    CUresult result = ctx == NULL ? context_current(&ctx) : CUDA_SUCCESS;
    REQUIRE(version != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(result == CUDA_SUCCESS && context_alive(ctx), CUDA_ERROR_INVALID_CONTEXT);
    *version = 3020;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    ENTER();
    if (leastPriority != NULL) {
        *leastPriority = 0;
    }
    if (greatestPriority != NULL) {
        *greatestPriority = -5;
    }
    LEAVE(CUDA_SUCCESS);
}
