#include "cuda/context/context.h"

#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "hardware/export.h"

#define STACK_SIZE 64

static struct CUctx_st *contexts;
static unsigned long long last_id;
static __thread CUcontext stack[STACK_SIZE];
static __thread unsigned depth;

bool context_is_alive(CUcontext context) {
    for (struct CUctx_st *found = contexts; found; found = found->next)
        if (found == context) return true;
    return false;
}

CUresult context_top(CUcontext *out) {
    if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    *out = stack[depth - 1];
    return context_is_alive(*out) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_current(CUcontext *out) {
    CUresult result = context_top(out);
    if (result != CUDA_SUCCESS || !(*out)->owner) return result;
    *out = (*out)->owner;
    return context_is_alive(*out) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUcontext context_add(const struct CUctx_st *wanted) {
    CUcontext made = malloc(sizeof *made);
    if (made) {
        *made = *wanted;
        made->id = ++last_id;
        made->next = contexts;
        contexts = made;
    }
    return made;
}

void context_remove(CUcontext context) {
    struct CUctx_st **link = &contexts;
    while (*link != context) link = &(*link)->next;
    *link = context->next;
}

bool context_stack_is_full(void) { return depth == STACK_SIZE; }

CUresult context_push(CUcontext context) {
    if (context_stack_is_full()) return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

void context_pop_if_top(CUcontext context) {
    if (depth > 0 && stack[depth - 1] == context) depth--;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    return context_push(context);
}

EXPORT CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context) *context = stack[depth];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent(CUcontext *context) { return cuCtxPopCurrent_v2(context); }

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (context && !context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (depth > 0) depth--;
    return !context ? CUDA_SUCCESS : context_push(context);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = depth == 0 ? NULL : stack[depth - 1];
    return CUDA_SUCCESS;
}

static CUresult device_of(CUdevice *device, CUcontext context) {
    CUresult result = !context ? context_current(&context) : CUDA_SUCCESS;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return result;
    if (!context_is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return device_of(device, NULL);
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return device_of(device, context);
}
