#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/queue/stream_state.h"
#include "cuda/queue/stream_waits.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

/* The arguments' error. `is_supported`: the simulated driver knows the flags. `*found`: the stream that the handle
 * means. */
static CUresult check(CUstream stream, CUdeviceptr addr, bool is_supported, CUstream *found) {
    *found = stream_find(stream);
    if (!*found) return CUDA_ERROR_INVALID_CONTEXT;
    return is_supported && addr != 0 ? capture_forbids_in(stream) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUstream found;
    CUresult result = check(stream, address, flags == CU_STREAM_WAIT_VALUE_GEQ, &found);
    if (result != CUDA_SUCCESS) return result;
    const uint32_t *word = (const uint32_t *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): host memory */
    return stream_waits_add(found, word, value);
}

EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUstream found;
    CUresult result = check(stream, address, flags == CU_STREAM_WRITE_VALUE_DEFAULT, &found);
    if (result != CUDA_SUCCESS) return result;
    uint32_t *word = (uint32_t *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): host memory */
    return stream_waits_write(found, word, value);
}
