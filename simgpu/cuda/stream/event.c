/* Events. */
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/context_work.h"
#include "cuda/queue/stream_state.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

#include <stdlib.h>

EXPORTED CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    (void)Flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(hStream);
    if (context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (hEvent == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(hEvent->capture) != NULL) {
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

EXPORTED CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    (void)Flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (phEvent == NULL) return CUDA_ERROR_INVALID_VALUE;
    *phEvent = calloc(1, sizeof **phEvent);
    return *phEvent != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuEventDestroy_v2(CUevent hEvent) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (hEvent == NULL) return CUDA_ERROR_INVALID_HANDLE;
    event_reset(hEvent);
    free(hEvent);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

EXPORTED CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(hStream);
    if (context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (hEvent == NULL) return CUDA_ERROR_INVALID_HANDLE;
    const Capture *capture = capture_of(hStream);
    hEvent->device = context->device;
    hEvent->capture = capture != NULL ? capture->number : 0;
    if (capture != NULL) {
        event_reset(hEvent);
        return CUDA_SUCCESS;
    }
    return event_mark(hEvent, context, *stream_position(hStream, context));
}

EXPORTED CUresult cuEventQuery(CUevent hEvent) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (hEvent == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(hEvent->capture) != NULL) return CUDA_ERROR_CAPTURED_EVENT;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    return hEvent->queue.id == 0 || event_passed(hEvent) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORTED CUresult cuEventSynchronize(CUevent hEvent) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (hEvent == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(hEvent->capture) != NULL) return CUDA_ERROR_CAPTURED_EVENT;
    CUdevice device = hEvent->device;
    queue_await(hEvent->queue, hEvent->position);
    pools_trim(device);
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    if (pMilliseconds == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (hStart == NULL || hEnd == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (hStart->queue.id == 0 || hEnd->queue.id == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (event_passed(hStart) == 0 || event_passed(hEnd) == 0) return CUDA_ERROR_NOT_READY;
    *pMilliseconds = (float)((double)hEnd->at - (double)hStart->at) / 1e6F;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return elapsed(pMilliseconds, hStart, hEnd);
}

EXPORTED CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return elapsed(pMilliseconds, hStart, hEnd);
}
