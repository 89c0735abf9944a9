/* Events. */
#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/context_work.h"
#include "cuda/queue/stream_state.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags) {
    (void)Flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(hStream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!hEvent) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(hEvent->capture)) {
        if (stream_is_default(hStream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        hStream->capture = hEvent->capture; /* the stream joins the capture */
        return CUDA_SUCCESS;
    }
    if (hEvent->queue.id != context->queue.id || hEvent->queue.card != context->queue.card) {
        queue_await(hEvent->queue, hEvent->position); /* of another context: this thread waits */
        return CUDA_SUCCESS;
    }
    uint64_t *position = stream_position(hStream, context);
    *position = hEvent->position > *position ? hEvent->position : *position;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned Flags) {
    (void)Flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!phEvent) return CUDA_ERROR_INVALID_VALUE;
    *phEvent = calloc(1, sizeof **phEvent);
    return *phEvent ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuEventDestroy_v2(CUevent hEvent) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!hEvent) return CUDA_ERROR_INVALID_HANDLE;
    event_reset(hEvent);
    free(hEvent);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(hStream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!hEvent) return CUDA_ERROR_INVALID_HANDLE;
    const struct capture *capture = capture_of(hStream);
    hEvent->device = context->device;
    hEvent->capture = capture ? capture->number : 0;
    if (capture) {
        event_reset(hEvent);
        return CUDA_SUCCESS;
    }
    return event_mark(hEvent, context, *stream_position(hStream, context));
}

EXPORT CUresult cuEventQuery(CUevent hEvent) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!hEvent) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(hEvent->capture)) return CUDA_ERROR_CAPTURED_EVENT;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    return hEvent->queue.id == 0 || event_passed(hEvent) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!hEvent) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(hEvent->capture)) return CUDA_ERROR_CAPTURED_EVENT;
    CUdevice device = hEvent->device;
    queue_await(hEvent->queue, hEvent->position);
    pools_trim(device);
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    if (!pMilliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!hStart || !hEnd) return CUDA_ERROR_INVALID_HANDLE;
    if (hStart->queue.id == 0 || hEnd->queue.id == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (event_passed(hStart) == 0 || event_passed(hEnd) == 0) return CUDA_ERROR_NOT_READY;
    *pMilliseconds = (float)((double)hEnd->at - (double)hStart->at) / 1e6F;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return elapsed(pMilliseconds, hStart, hEnd);
}

EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return elapsed(pMilliseconds, hStart, hEnd);
}
