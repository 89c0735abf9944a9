/* Queries about captures. */
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "hardware/export.h"

static CUstreamCaptureStatus status_of(const struct capture *capture) {
    if (!capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!captureStatus) return CUDA_ERROR_INVALID_VALUE;
    *captureStatus = status_of(capture_of(hStream));
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

EXPORT CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return describe(hStream, captureStatus_out, id_out, NULL);
}

/* Dependencies are not recorded: the list is empty. */
EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                          cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                          size_t *numDependencies_out) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (dependencies_out) *dependencies_out = NULL;
    if (numDependencies_out) *numDependencies_out = 0;
    return describe(hStream, captureStatus_out, id_out, graph_out);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                          cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                          const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out) {
    if (edgeData_out) *edgeData_out = NULL;
    return cuStreamGetCaptureInfo_v2(hStream, captureStatus_out, id_out, graph_out, dependencies_out,
                                     numDependencies_out);
}
