#include "driver/capture.h"

#include "driver/function_table.h"

static bool was_seen; /* atomically; never false again: a capture may end in ways that we do not see */

bool capture_was_seen(void) { return __atomic_load_n(&was_seen, __ATOMIC_RELAXED); }

static CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

int capture_allow(void) { return (int)exchange(CU_STREAM_CAPTURE_MODE_RELAXED); }

void capture_restore(int mode) { exchange((CUstreamCaptureMode)mode); }

#define BEGIN(name, ...)                                     \
    do {                                                     \
        __atomic_store_n(&was_seen, true, __ATOMIC_RELAXED); \
        return REAL(name)(__VA_ARGS__);                      \
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
