/* Wrappers of functions in which the host waits for the card. What was queued ahead of its turn needs the turn now
 * (compute/gate/host_wait.h). Copies wait too: copies.c. Functions without a wrapper that wait are noticed as a time
 * without launches. */
#include "compute/gate/host_wait.h"
#include "driver/function_table.h"
#include "hooks/programs/space_fault.h"

static CUresult finish(const struct host_wait *wait, CUresult result) {
    host_wait_end(wait);
    return space_fault_note(result);
}

EXPORT CUresult cuCtxSynchronize(void) {
    struct host_wait wait = host_wait_begin();
    return finish(&wait, REAL(cuCtxSynchronize)());
}

/* The gate is that of the calling thread's context, which may belong to another card: then the turn of the context's
 * card is asked for after the time of silence, as for functions without a wrapper. */
EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
    struct host_wait wait = host_wait_begin();
    return finish(&wait, REAL(cuCtxSynchronize_v2)(context));
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    struct host_wait wait = host_wait_begin();
    return finish(&wait, REAL(cuStreamSynchronize)(stream));
}

EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) {
    struct host_wait wait = host_wait_begin();
    return finish(&wait, REAL(cuStreamSynchronize_ptsz)(stream));
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
    struct host_wait wait = host_wait_begin();
    return finish(&wait, REAL(cuEventSynchronize)(event));
}
