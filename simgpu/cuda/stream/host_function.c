/* Functions of the program's that a stream calls: cuLaunchHostFunc and cuStreamAddCallback. */
#include "cuda/stream/host_function.h"

#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/queue/stream_state.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

CUresult stream_call(CUstream stream, struct host_call call) {
    CUstream found = stream_find(stream);
    return found ? stream_waits_call(found, call) : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    CUresult result;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (capture_takes_call(stream, function, data, &result)) return result;
    return stream_call(stream, (struct host_call){.function = function, .data = data});
}

/* A callback cannot be captured. */
EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!function || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = capture_forbids_in(stream);
    if (result != CUDA_SUCCESS) return result;
    return stream_call(stream, (struct host_call){.callback = function, .stream = stream, .data = data});
}
