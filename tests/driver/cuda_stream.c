/* Streams, events and launches. A kernel computes nothing: it keeps its stream busy for its time. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <stdlib.h>

struct CUstream_st {
    struct CUstream_st *next;
    CUcontext context;
    unsigned flags;
    uint64_t busy_until;
};

struct CUevent_st {
    uint64_t at;     /* when its work is done; 0 = never recorded */
    CUdevice device; /* where it was recorded */
};

void streams_free_of(CUcontext context) {
    while (context->streams != NULL) {
        CUstream gone = context->streams;
        context->streams = gone->next;
        free(gone);
    }
}

/* The default streams (NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) are the context's own clock. */
static bool is_default(CUstream stream) { return (uintptr_t)stream <= 2; }

static uint64_t *clock_of(CUstream stream, CUcontext context) {
    return is_default(stream) ? &context->busy_until : &stream->busy_until;
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
    CUdevice device = context->device;
    sleep_until(*clock_of(hStream, context));
    pools_trim(device);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamQuery(CUstream hStream) {
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    LEAVE(*clock_of(hStream, context) <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    (void)Flags;
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    uint64_t *clock = clock_of(hStream, context);
    *clock = hEvent->at > *clock ? hEvent->at : *clock;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    (void)Flags;
    ENTER();
    REQUIRE(phEvent != NULL, CUDA_ERROR_INVALID_VALUE);
    *phEvent = calloc(1, sizeof **phEvent);
    LEAVE(*phEvent != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    free(hEvent);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

SIM_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    uint64_t now = now_ns();
    uint64_t done = *clock_of(hStream, context);
    hEvent->at = done > now ? done : now;
    hEvent->device = context->device;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventQuery(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    LEAVE(hEvent->at <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    CUdevice device = hEvent->device;
    sleep_until(hEvent->at);
    pools_trim(device);
    LEAVE(CUDA_SUCCESS);
}

static CUresult elapsed(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    REQUIRE(pMilliseconds != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(hStart != NULL && hEnd != NULL && hStart->at != 0 && hEnd->at != 0, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(hEnd->at <= now_ns(), CUDA_ERROR_NOT_READY);
    *pMilliseconds = (float)((double)hEnd->at - (double)hStart->at) / 1e6F;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    ENTER();
    return elapsed(pMilliseconds, hStart, hEnd);
}

SIM_EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    ENTER();
    return elapsed(pMilliseconds, hStart, hEnd);
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
    uint64_t *clock = clock_of(stream, context);
    uint64_t now = now_ns();
    *clock = (*clock > now ? *clock : now) + duration_ns;
    context->busy_until = *clock > context->busy_until ? *clock : context->busy_until;
    ledger_busy_until(card.uuid, context->busy_until);
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, CUstream stream) {
    REQUIRE(stream_context(stream) != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(function != NULL, CUDA_ERROR_INVALID_HANDLE);
    CUresult result = local_grow(stream_context(stream), function->local);
    REQUIRE(result == CUDA_SUCCESS, result);
    LEAVE(stream_run(stream, function->duration_ns));
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
    (void)sharedMemBytes;
    (void)kernelParams;
    (void)extra;
    ENTER();
    REQUIRE(gridDimX > 0 && gridDimY > 0 && gridDimZ > 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(blockDimX > 0 && blockDimY > 0 && blockDimZ > 0, CUDA_ERROR_INVALID_VALUE);
    return launch(f, hStream);
}

SIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    (void)kernelParams;
    (void)extra;
    ENTER();
    REQUIRE(config != NULL, CUDA_ERROR_INVALID_VALUE);
    return launch(f, config->hStream);
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                              unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                              unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                              void **kernelParams) {
    return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                          kernelParams, NULL);
}
