/* Wrappers of functions in which the host waits for the card. What was queued ahead of its turn needs the turn now
 * (compute/gate_queue.h). Copies wait too: copies.c. Functions without a wrapper that wait are noticed as a time
 * without launches. */
#include "compute/gate_queue.h"
#include "driver/function_table.h"

#define WAIT(name, ...)                                  \
    do {                                                 \
        struct host_wait wait = gate_queue_begin_wait(); \
        CUresult result = REAL(name)(__VA_ARGS__);       \
        gate_queue_end_wait(&wait);                      \
        return result;                                   \
    } while (0)

EXPORT CUresult cuCtxSynchronize(void) { WAIT(cuCtxSynchronize); }

/* The gate is that of the calling thread's context, which may belong to another card: then the turn of the context's
 * card is asked for after the time of silence, as for functions without a wrapper. */
EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) { WAIT(cuCtxSynchronize_v2, context); }

EXPORT CUresult cuStreamSynchronize(CUstream stream) { WAIT(cuStreamSynchronize, stream); }

EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) { WAIT(cuStreamSynchronize_ptsz, stream); }

EXPORT CUresult cuEventSynchronize(CUevent event) { WAIT(cuEventSynchronize, event); }
