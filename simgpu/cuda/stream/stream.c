/* A kernel computes nothing. It keeps the card busy for its duration, after all earlier kernels of its context,
 * whatever their streams. */
#include "cuda/stream/stream.h"

#include <stdlib.h>

#include "cuda/context/context.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/context_work.h"
#include "cuda/queue/stream_state.h"
#include "cuda/queue/stream_waits.h"
#include "hardware/cards.h"
#include "hardware/export.h"

void streams_free_of(CUcontext context) {
    while (context->streams) {
        CUstream gone = context->streams;
        context->streams = gone->next;
        free(gone);
    }
}

CUcontext stream_context(CUstream stream) {
    CUcontext context = NULL;
    if (!stream_is_default(stream)) return stream->context;
    return context_current(&context) == CUDA_SUCCESS ? context : NULL;
}

CUresult stream_make(CUstream *out, CUcontext context, unsigned flags) {
    CUstream made = malloc(sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct CUstream_st){.next = context->streams, .context = context, .flags = flags};
    context->streams = made;
    *out = made;
    return CUDA_SUCCESS;
}

static CUresult create(CUstream *phStream, unsigned flags) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!phStream || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    return stream_make(phStream, context, flags);
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return create(stream, flags);
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    (void)priority;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return create(stream, flags);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (stream_is_default(stream)) return CUDA_ERROR_INVALID_HANDLE;
    struct CUstream_st **link = &stream->context->streams;
    while (*link != stream) {
        if (!*link) return CUDA_ERROR_INVALID_HANDLE;
        link = &(*link)->next;
    }
    *link = stream->next;
    free(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult forbidden = capture_forbids_in(stream);
    if (forbidden != CUDA_SUCCESS) return forbidden;
    CUdevice device = context->device;
    struct card_queue queue = context->queue;
    queue_await(queue, *stream_position(stream, context));
    stream_waits_do_writes(queue);
    pools_trim(device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult forbidden = capture_forbids_in(stream);
    if (forbidden != CUDA_SUCCESS) return forbidden;
    bool has_passed = queue_passed(context->queue, *stream_position(stream, context));
    return has_passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult stream_run(CUstream stream, uint64_t duration_ns) {
    struct card card;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!device_card(context->device, &card)) return CUDA_ERROR_UNKNOWN;
    return context_add_work(context, duration_ns, stream_position(stream, context));
}

static CUresult get_context(CUstream stream, CUcontext *context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = stream_context(stream);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return get_context(stream, context);
}

/* Streams of a green context belong to the primary context here. */
EXPORT CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (green) *green = NULL;
    return get_context(stream, context);
}
