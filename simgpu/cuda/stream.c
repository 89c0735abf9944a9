/* Streams. A kernel computes nothing: it keeps the card busy for its time, after all that its context launched before,
 * in whatever stream. */
#define _GNU_SOURCE
#include "stream.h"

#include <stdlib.h>

void streams_free_of(CUcontext context) {
    while (context->streams != NULL) {
        CUstream gone = context->streams;
        context->streams = gone->next;
        free(gone);
    }
}

CUcontext stream_context(CUstream stream) {
    CUcontext context = NULL;
    if (!is_default(stream)) {
        return stream->context;
    }
    return context_current(&context) == CUDA_SUCCESS ? context : NULL;
}

CUresult stream_make(CUstream *out, CUcontext context, unsigned flags) {
    CUstream made = malloc(sizeof *made);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUstream_st){.next = context->streams, .context = context, .flags = flags};
    context->streams = made;
    *out = made;
    return CUDA_SUCCESS;
}

static CUresult create(CUstream *phStream, unsigned flags) {
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(phStream != NULL && flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    LEAVE(stream_make(phStream, context, flags));
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags) {
    ENTER();
    return create(phStream, Flags);
}

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
    (void)priority;
    ENTER();
    return create(phStream, flags);
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream) {
    ENTER();
    REQUIRE(!is_default(hStream), CUDA_ERROR_INVALID_HANDLE);
    struct CUstream_st **link = &hStream->context->streams;
    while (*link != hStream) {
        REQUIRE(*link != NULL, CUDA_ERROR_INVALID_HANDLE);
        link = &(*link)->next;
    }
    *link = hStream->next;
    free(hStream);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

SIM_EXPORT CUresult cuStreamSynchronize(CUstream hStream) {
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    CUresult forbidden = capture_forbids_in(hStream);
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    CUdevice device = context->device;
    queue_await(context->queue, *position_of(hStream, context));
    pools_trim(device);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamQuery(CUstream hStream) {
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    CUresult forbidden = capture_forbids_in(hStream);
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    bool passed = queue_passed(context->queue, *position_of(hStream, context));
    LEAVE(passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult stream_run(CUstream stream, uint64_t duration_ns) {
    Card card;
    CUcontext context = stream_context(stream);
    if (context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!device_card(context->device, &card)) {
        return CUDA_ERROR_UNKNOWN;
    }
    return context_work(context, duration_ns, position_of(stream, context));
}

static CUresult get_context(CUstream stream, CUcontext *context) {
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
    *context = stream_context(stream);
    LEAVE(*context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

SIM_EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    ENTER();
    return get_context(hStream, pctx);
}

/* A green context's streams are the primary context's here. */
SIM_EXPORT CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx) {
    ENTER();
    if (pGreenCtx != NULL) {
        *pGreenCtx = NULL;
    }
    return get_context(hStream, pCtx);
}
