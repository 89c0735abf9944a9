/* Wrappers of waits of a stream for an event: in a process with several cards, what it waits for may be on another
 * card, and its own card is idle (compute/queue/stream_waits.h). */
#include "compute/queue/stream_waits.h"

#include "compute/gate/gate_state.h"
#include "compute/queue/turn_events.h"
#include "driver/capture.h"
#include "driver/function_table.h"

static bool is_capturing(CUstream stream) { return capture_was_seen() && turn_events_is_capturing(stream); }

static bool begin(CUstream stream, CUevent event) {
    return gate_are_several() && !is_capturing(stream) && stream_waits_begin(stream, event);
}

static CUresult finish(CUstream stream, bool is_begun, CUresult result) {
    if (is_begun && result == CUDA_SUCCESS) stream_waits_end(stream);
    return result;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    CUstream meant = STREAM_OR_LEGACY(stream);
    bool is_begun = begin(meant, event);
    return finish(meant, is_begun, REAL(cuStreamWaitEvent)(stream, event, flags));
}

EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
    CUstream meant = STREAM_OR_PER_THREAD(stream);
    bool is_begun = begin(meant, event);
    return finish(meant, is_begun, REAL(cuStreamWaitEvent_ptsz)(stream, event, flags));
}
