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
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    if (capture_numbered(hEvent->capture) != NULL) {
        REQUIRE(!stream_is_default(hStream), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        hStream->capture = hEvent->capture; /* the stream joins the capture */
        LEAVE(CUDA_SUCCESS);
    }
    if (hEvent->queue.id != context->queue.id || hEvent->queue.card != context->queue.card) {
        queue_await(hEvent->queue, hEvent->position); /* of another context: this thread waits */
        LEAVE(CUDA_SUCCESS);
    }
    uint64_t *position = stream_position(hStream, context);
    *position = hEvent->position > *position ? hEvent->position : *position;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    (void)Flags;
    ENTER();
    REQUIRE(phEvent != NULL, CUDA_ERROR_INVALID_VALUE);
    *phEvent = calloc(1, sizeof **phEvent);
    LEAVE(*phEvent != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORTED CUresult cuEventDestroy_v2(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    event_reset(hEvent);
    free(hEvent);
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

EXPORTED CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    const Capture *capture = capture_of(hStream);
    hEvent->device = context->device;
    hEvent->capture = capture != NULL ? capture->number : 0;
    if (capture != NULL) {
        event_reset(hEvent);
        LEAVE(CUDA_SUCCESS);
    }
    LEAVE(event_mark(hEvent, context, *stream_position(hStream, context)));
}

EXPORTED CUresult cuEventQuery(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(capture_numbered(hEvent->capture) == NULL, CUDA_ERROR_CAPTURED_EVENT);
    CUresult forbidden = capture_forbids();
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    LEAVE(hEvent->queue.id == 0 || event_passed(hEvent) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

EXPORTED CUresult cuEventSynchronize(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(capture_numbered(hEvent->capture) == NULL, CUDA_ERROR_CAPTURED_EVENT);
    CUdevice device = hEvent->device;
    queue_await(hEvent->queue, hEvent->position);
    pools_trim(device);
    LEAVE(CUDA_SUCCESS);
}

static CUresult elapsed(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    REQUIRE(pMilliseconds != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(hStart != NULL && hEnd != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(hStart->queue.id != 0 && hEnd->queue.id != 0, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(event_passed(hStart) != 0 && event_passed(hEnd) != 0, CUDA_ERROR_NOT_READY);
    *pMilliseconds = (float)((double)hEnd->at - (double)hStart->at) / 1e6F;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    ENTER();
    return elapsed(pMilliseconds, hStart, hEnd);
}

EXPORTED CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    ENTER();
    return elapsed(pMilliseconds, hStart, hEnd);
}
