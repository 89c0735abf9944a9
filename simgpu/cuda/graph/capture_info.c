/* Queries about captures. */
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "hardware/export.h"

static CUstreamCaptureStatus status_of(const struct capture *capture) {
    if (!capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    *status = status_of(capture_of(stream));
    return CUDA_SUCCESS;
}

static CUresult describe(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph) {
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    const struct capture *capture = capture_of(stream);
    *status = status_of(capture);
    if (capture && id) *id = capture->number;
    if (capture && graph) *graph = capture->graph;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return describe(stream, status, id, NULL);
}

/* Dependencies are not recorded: the list is empty. */
EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **dependencies, size_t *count) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return describe(stream, status, id, graph);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **dependencies,
                                          const CUgraphEdgeData **edges, size_t *count) {
    if (edges) *edges = NULL;
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}
