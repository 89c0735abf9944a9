/* Events: recorded, waited for, timed. */
#define _GNU_SOURCE
#include "cuda_stream.h"

#include <stdlib.h>

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    (void)Flags;
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    if (capture_numbered(hEvent->capture) != NULL) {
        REQUIRE(!is_default(hStream), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        hStream->capture = hEvent->capture; /* it joins */
        LEAVE(CUDA_SUCCESS);
    }
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
    const Capture *capture = capture_of(hStream);
    hEvent->capture = capture != NULL ? capture->number : 0;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuEventQuery(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(capture_numbered(hEvent->capture) == NULL, CUDA_ERROR_CAPTURED_EVENT);
    CUresult forbidden = capture_forbids();
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    LEAVE(hEvent->at <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    ENTER();
    REQUIRE(hEvent != NULL, CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(capture_numbered(hEvent->capture) == NULL, CUDA_ERROR_CAPTURED_EVENT);
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
