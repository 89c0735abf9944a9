/* Wrappers that begin a stream capture: from the first one on, queries that would invalidate a capture are made in
 * relaxed mode (driver/capture.h). */
#include "driver/capture.h"
#include "driver/function_table.h"

EXPORT CUresult cuStreamBeginCapture(CUstream stream) {
    capture_note();
    return REAL(cuStreamBeginCapture)(stream);
}

EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
    capture_note();
    return REAL(cuStreamBeginCapture_ptsz)(stream);
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    capture_note();
    return REAL(cuStreamBeginCapture_v2)(stream, mode);
}

EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
    capture_note();
    return REAL(cuStreamBeginCapture_v2_ptsz)(stream, mode);
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                            const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    capture_note();
    return REAL(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, data, count, mode);
}

EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    capture_note();
    return REAL(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, dependencies, data, count, mode);
}
