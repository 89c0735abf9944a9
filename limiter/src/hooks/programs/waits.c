/* Wrappers of functions in which the host waits for the card. What was queued ahead of its turn needs the turn now
 * (compute/gate_queue.h). A copy to the host counts as a wait also where it is asynchronous: the program wants the
 * result, and a copy to memory that is not pinned blocks. Functions without a wrapper that wait are noticed as a time
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

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) { WAIT(cuMemcpy, to, from, size); }

EXPORT CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) { WAIT(cuMemcpy_ptds, to, from, size); }

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    WAIT(cuMemcpyHtoD_v2, to, from, size);
}

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size) {
    WAIT(cuMemcpyHtoD_v2_ptds, to, from, size);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) { WAIT(cuMemcpyDtoH_v2, to, from, size); }

EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t size) {
    WAIT(cuMemcpyDtoH_v2_ptds, to, from, size);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    WAIT(cuMemcpyDtoHAsync_v2, to, from, size, stream);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    WAIT(cuMemcpyDtoHAsync_v2_ptsz, to, from, size, stream);
}
