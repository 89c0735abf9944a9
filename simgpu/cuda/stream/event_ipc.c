/* IPC handles of events. Any process may open the handle while its maker has the event, and both may record it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/context/context.h"
#include "cuda/driver/driver.h"
#include "cuda/queue/stream_state.h"
#include "hardware/export.h"
#include "ledger/shared_events.h"

static_assert(sizeof(uint64_t) <= sizeof(CUipcEventHandle), "the id fits a handle");

static CUresult share(CUevent event) {
    struct recorded_at at = {.queue = event->queue, .position = event->position};
    if (event->shared_id == 0) event->shared_id = shared_event_create(at);
    return event->shared_id != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!handle || !event) return CUDA_ERROR_INVALID_VALUE;
    if (!(event->flags & CU_EVENT_INTERPROCESS)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = share(event);
    if (result != CUDA_SUCCESS) return result;
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &event->shared_id, sizeof event->shared_id);
    return CUDA_SUCCESS;
}

/* In the process that made the event, the handle cannot be opened, as one of memory (not measured). */
static CUresult open_handle(CUevent *out, uint64_t id) {
    struct recorded_at at;
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!out || !shared_event_read(id, &at)) return CUDA_ERROR_INVALID_VALUE;
    if (shared_event_is_own(id)) return CUDA_ERROR_INVALID_CONTEXT;
    CUevent made = calloc(1, sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct CUevent_st){.flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING,
                                .shared_id = id,
                                .device = context->device,
                                .queue = at.queue,
                                .position = at.position};
    *out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    uint64_t id;
    memcpy(&id, &handle, sizeof id);
    return open_handle(event, id);
}
