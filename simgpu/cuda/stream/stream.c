/* A kernel computes nothing. It keeps the card busy for its duration, after all earlier kernels of its stream. */
#include "cuda/stream/stream.h"

#include <stdlib.h>

#include "cuda/context/context.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_work.h"
#include "cuda/queue/stream_await.h"
#include "cuda/queue/stream_state.h"
#include "hardware/cards.h"
#include "hardware/export.h"

static __thread char this_thread; /* its address identifies the thread */

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

static CUstream add(CUcontext context, struct channel *channel, unsigned flags, const void *thread) {
    CUstream made = malloc(sizeof *made);
    if (!made) return NULL;
    *made = (struct CUstream_st){
        .next = context->streams, .context = context, .channel = channel, .flags = flags, .thread = thread};
    channel->streams++;
    context->streams = made;
    return made;
}

/* The channel with the fewest streams, but for the one of the legacy default stream. */
static struct channel *next_channel(CUcontext context) {
    struct channel *found = &context->channel[1];
    for (unsigned i = 2; i < TIMELINE_CHANNELS; i++)
        if (context->channel[i].streams < found->streams) found = &context->channel[i];
    return found;
}

CUresult stream_make(CUstream *out, CUcontext context, unsigned flags) {
    CUstream made = add(context, next_channel(context), flags, NULL);
    if (made) *out = made;
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUstream legacy_of(CUcontext context) {
    CUstream found = context->streams;
    while (found && !stream_is_legacy(found)) found = found->next;
    return found ? found : add(context, &context->channel[0], 0, NULL);
}

static CUstream thread_stream_of(CUcontext context) {
    CUstream found = context->streams;
    while (found && found->thread != &this_thread) found = found->next;
    return found ? found : add(context, next_channel(context), 0, &this_thread);
}

CUstream stream_find(CUstream handle) {
    CUcontext context;
    if (!stream_is_default(handle)) return handle;
    if (context_current(&context) != CUDA_SUCCESS) return NULL;
    return handle == CU_STREAM_PER_THREAD ? thread_stream_of(context) : legacy_of(context);
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
    stream->channel->streams--;
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
    CUstream found = stream_find(stream);
    if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
    stream_await(found);
    pools_trim(device);
    return driver_state();
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult forbidden = capture_forbids_in(stream);
    if (forbidden != CUDA_SUCCESS) return forbidden;
    CUstream found = stream_find(stream);
    if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
    return stream_has_passed(found) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult stream_run(CUstream stream, uint64_t duration_ns) {
    struct card card;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!device_card(context->device, &card)) return CUDA_ERROR_UNKNOWN;
    CUstream found = stream_find(stream);
    return found ? stream_add_work(found, duration_ns) : CUDA_ERROR_OUT_OF_MEMORY;
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
