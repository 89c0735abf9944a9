/* Wrappers that begin a stream capture: from the first one on, queries that would invalidate a capture are made in
 * relaxed mode (driver/capture.h). */
#include "driver/capture.h"
#include "driver/function_table.h"

#define BEGIN(name, ...)                \
    do {                                \
        capture_note();                 \
        return REAL(name)(__VA_ARGS__); \
    } while (0)

EXPORT CUresult cuStreamBeginCapture(CUstream stream) { BEGIN(cuStreamBeginCapture, stream); }

EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream) { BEGIN(cuStreamBeginCapture_ptsz, stream); }

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    BEGIN(cuStreamBeginCapture_v2, stream, mode);
}

EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
    BEGIN(cuStreamBeginCapture_v2_ptsz, stream, mode);
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                            const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    BEGIN(cuStreamBeginCaptureToGraph, stream, graph, dependencies, data, count, mode);
}

EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    BEGIN(cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies, data, count, mode);
}
