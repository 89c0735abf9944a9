/* Queries about captures. */
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "hardware/export.h"

static CUstreamCaptureStatus status_of(const Capture *capture) {
    if (capture == NULL) {
        return CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

EXPORTED CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (captureStatus == NULL) return CUDA_ERROR_INVALID_VALUE;
    *captureStatus = status_of(capture_of(hStream));
    return CUDA_SUCCESS;
}

static CUresult describe(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph) {
    if (status == NULL) return CUDA_ERROR_INVALID_VALUE;
    const Capture *capture = capture_of(stream);
    *status = status_of(capture);
    if (capture != NULL && id != NULL) {
        *id = capture->number;
    }
    if (capture != NULL && graph != NULL) {
        *graph = capture->graph;
    }
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                         cuuint64_t *id_out) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return describe(hStream, captureStatus_out, id_out, NULL);
}

/* Dependencies are not recorded: the list is empty. */
EXPORTED CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                            cuuint64_t *id_out, CUgraph *graph_out,
                                            const CUgraphNode **dependencies_out, size_t *numDependencies_out) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (dependencies_out != NULL) {
        *dependencies_out = NULL;
    }
    if (numDependencies_out != NULL) {
        *numDependencies_out = 0;
    }
    return describe(hStream, captureStatus_out, id_out, graph_out);
}

EXPORTED CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                            cuuint64_t *id_out, CUgraph *graph_out,
                                            const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
                                            size_t *numDependencies_out) {
    if (edgeData_out != NULL) {
        *edgeData_out = NULL;
    }
    return cuStreamGetCaptureInfo_v2(hStream, captureStatus_out, id_out, graph_out, dependencies_out,
                                     numDependencies_out);
}
