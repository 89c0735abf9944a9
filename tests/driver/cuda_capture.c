/* Capture of a stream's work into a graph: of it, what it allocates and frees. A function that is unsafe meanwhile
 * fails, and the capture with it, unless the thread that calls it has relaxed its mode. */
#define _GNU_SOURCE
#include "cuda_capture.h"

#define MOST 16

typedef struct {
    CUstream stream; /* NULL: free place */
    CUgraph graph;
    CUstreamCaptureMode mode;
    const void *thread;
    bool broken;
} Capture;

static Capture captures[MOST];
static __thread CUstreamCaptureMode own_mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL */

static const void *this_thread(void) { return &own_mode; }

static Capture *capture_of(CUstream stream) {
    for (int i = 0; stream != NULL && i < MOST; i++) {
        if (captures[i].stream == stream) {
            return &captures[i];
        }
    }
    return NULL;
}

static bool forbids(const Capture *capture) {
    bool here = capture->thread == this_thread() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    bool anywhere = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    return capture->stream != NULL && own_mode != CU_STREAM_CAPTURE_MODE_RELAXED && (here || anywhere);
}

CUresult capture_unsafe(void) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < MOST; i++) {
        if (forbids(&captures[i])) {
            captures[i].broken = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

bool capture_graph(CUstream stream, CUgraph *graph, CUresult *result) {
    const Capture *capture = capture_of(stream);
    if (capture == NULL) {
        return false;
    }
    *graph = capture->graph;
    *result = capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    return true;
}

static CUresult begin(CUstream stream, CUgraph graph, CUstreamCaptureMode mode) {
    Capture *place = captures;
    while (place->stream != NULL && place < captures + MOST - 1) {
        place++;
    }
    if (stream == NULL || capture_of(stream) != NULL || place->stream != NULL) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    *place = (Capture){.stream = stream, .graph = graph, .mode = mode, .thread = this_thread()};
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    CUgraph graph;
    CUresult result = cuGraphCreate(&graph, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    ENTER();
    LEAVE(begin(hStream, graph, mode));
}

SIM_EXPORT CUresult cuStreamBeginCapture(CUstream hStream) {
    return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    ENTER();
    Capture *capture = capture_of(hStream);
    REQUIRE(phGraph != NULL && capture != NULL, CUDA_ERROR_INVALID_VALUE);
    bool broken = capture->broken;
    *phGraph = broken ? NULL : capture->graph;
    *capture = (Capture){0};
    LEAVE(broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    ENTER();
    REQUIRE(captureStatus != NULL, CUDA_ERROR_INVALID_VALUE);
    const Capture *capture = capture_of(hStream);
    *captureStatus = capture == NULL   ? CU_STREAM_CAPTURE_STATUS_NONE
                     : capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    ENTER();
    REQUIRE(mode != NULL, CUDA_ERROR_INVALID_VALUE);
    CUstreamCaptureMode before = own_mode;
    own_mode = *mode;
    *mode = before;
    LEAVE(CUDA_SUCCESS);
}
