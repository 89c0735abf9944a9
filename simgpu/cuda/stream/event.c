/* Events. */
#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/context_work.h"
#include "cuda/queue/stream_await.h"
#include "cuda/queue/stream_state.h"
#include "cuda/queue/stream_waits.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"
#include "ledger/shared_events.h"

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    (void)flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(event->capture)) {
        if (stream_is_default(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        stream->capture = event->capture; /* the stream joins the capture */
        return CUDA_SUCCESS;
    }
    event_refresh(event);
    CUstream found = stream_find(stream);
    return found ? stream_await_event(found, event) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A shared event has no times: another process may record it. */
static bool is_allowed(unsigned flags) {
    return !(flags & CU_EVENT_INTERPROCESS) || (flags & CU_EVENT_DISABLE_TIMING) != 0;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!event || !is_allowed(flags)) return CUDA_ERROR_INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    if (!*event) return CUDA_ERROR_OUT_OF_MEMORY;
    (*event)->flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    event_reset(event);
    if (event->shared_id != 0 && shared_event_is_own(event->shared_id)) shared_event_free(event->shared_id);
    free(event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    const struct capture *capture = capture_of(stream);
    event->device = context->device;
    event->capture = capture ? capture->number : 0;
    if (capture) {
        event_reset(event);
        return CUDA_SUCCESS;
    }
    CUstream found = stream_find(stream);
    return found ? event_mark(event, found) : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuEventQuery(CUevent event) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(event->capture)) return CUDA_ERROR_CAPTURED_EVENT;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    event_refresh(event);
    return event->queue.id == 0 || event_passed(event) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_numbered(event->capture)) return CUDA_ERROR_CAPTURED_EVENT;
    event_refresh(event);
    CUdevice device = event->device;
    struct card_queue queue = event->queue;
    queue_await(queue, event->position);
    stream_waits_do_writes(queue);
    pools_trim(device);
    return driver_state();
}

static CUresult elapsed(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    if (!pMilliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!hStart || !hEnd) return CUDA_ERROR_INVALID_HANDLE;
    if ((hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
    if (hStart->queue.id == 0 || hEnd->queue.id == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (event_passed(hStart) == 0 || event_passed(hEnd) == 0) return CUDA_ERROR_NOT_READY;
    *pMilliseconds = (float)((double)hEnd->at - (double)hStart->at) / 1e6F;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return elapsed(milliseconds, start, end);
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return elapsed(milliseconds, start, end);
}
