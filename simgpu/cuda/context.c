/* Contexts, and each thread's stack of them. */
#define _GNU_SOURCE
#include "driver.h"

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

CUresult context_top(CUcontext *out) {
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *out = stack[depth - 1];
    return context_alive(*out) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_current(CUcontext *out) {
    CUresult result = context_top(out);
    if (result != CUDA_SUCCESS || (*out)->owner == NULL) {
        return result;
    }
    *out = (*out)->owner;
    return context_alive(*out) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUcontext context_add(const struct CUctx_st *wanted) {
    CUcontext made = malloc(sizeof *made);
    if (made != NULL) {
        *made = *wanted;
        made->id = ++last_id;
        made->next = contexts;
        contexts = made;
    }
    return made;
}

CUresult context_make(CUcontext *out, CUdevice dev, unsigned flags, bool primary) {
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
    *out = context_add(&(struct CUctx_st){.device = dev, .flags = flags, .primary = primary, .overhead = card.context});
    if (*out == NULL) {
        device_release(dev, card.context);
    }
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void context_destroy(CUcontext context) {
    struct CUctx_st **link = &contexts;
    while (*link != context) {
        link = &(*link)->next;
    }
    *link = context->next;
    queue_end(context);
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
    REQUIRE(context_alive(ctx) && !ctx->primary && ctx->owner == NULL, CUDA_ERROR_INVALID_CONTEXT);
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
    CUresult result = context == NULL ? context_top(&context) : CUDA_SUCCESS;
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(context_alive(context), CUDA_ERROR_INVALID_CONTEXT);
    context = context->owner != NULL ? context->owner : context;
    REQUIRE(context_alive(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUresult forbidden = capture_forbids();
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    CUdevice device = context->device;
    queue_await(context->queue, context->submitted);
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
