/* Default streams cannot be captured here. What makes a capture invalid is as measured on an H200 with driver 580:
 * a call that could make a captured stream wait is forbidden, depending on the modes of the capture and of the thread.
 */
#include "cuda/graph/capture.h"

#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "cuda/graph/graph.h"
#include "cuda/graph/nodes.h"
#include "cuda/queue/stream_state.h"
#include "hardware/export.h"

static struct capture *captures;
static uint64_t last_number;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static __thread char this_thread; /* its address identifies the thread */

struct capture *capture_numbered(uint64_t number) {
    struct capture *found = captures;
    while (found && found->number != number) found = found->next;
    return found;
}

struct capture *capture_of(CUstream stream) {
    return stream_is_default(stream) ? NULL : capture_numbered(stream->capture);
}

CUresult capture_forbids_in(CUstream stream) {
    struct capture *capture = capture_of(stream);
    if (!capture) return CUDA_SUCCESS;
    capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Whether this thread must not make an unsafe call during that capture. */
static bool forbids(const struct capture *capture) {
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture->thread == &this_thread) return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_forbids(void) {
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (forbids(capture)) {
            capture->is_invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

static CUresult begin(CUstream stream, CUgraph graph, CUstreamCaptureMode mode) {
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream_is_default(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (capture_of(stream)) return CUDA_ERROR_ILLEGAL_STATE;
    graph = !graph ? graph_make() : graph;
    struct capture *made = !graph ? NULL : malloc(sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct capture){.next = captures,
                             .number = ++last_number,
                             .graph = graph,
                             .origin = stream,
                             .mode = mode,
                             .thread = &this_thread};
    captures = made;
    stream->capture = made->number;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return begin(stream, NULL, mode);
}

EXPORT CUresult cuStreamBeginCapture(CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return begin(stream, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                            const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
    (void)dependencies;
    (void)edges;
    (void)count;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!graph_exists(graph)) return CUDA_ERROR_INVALID_VALUE;
    return begin(stream, graph, mode);
}

static void drop(const struct capture *capture) {
    struct capture **link = &captures;
    while (*link != capture) link = &(*link)->next;
    struct capture *gone = *link;
    *link = gone->next;
    free(gone);
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    struct capture *capture = capture_of(stream);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    bool is_own = capture->thread == &this_thread || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!is_own) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    bool is_invalid = capture->is_invalid;
    *graph = is_invalid ? NULL : capture->graph;
    drop(capture);
    return is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult add_node(CUgraph graph, CUgraphNodeType type) {
    CUgraphNode node;
    return graph_add(&node, graph, &(struct CUgraphNode_st){.type = type});
}

bool capture_takes(CUstream stream, CUgraphNodeType type, CUresult *result) {
    const struct capture *capture = capture_of(stream);
    if (capture) *result = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : add_node(capture->graph, type);
    return capture != NULL;
}

bool capture_takes_kernel(CUstream stream, CUfunction function, CUresult *result) {
    const struct capture *capture = capture_of(stream);
    if (capture)
        *result =
            capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : graph_add_kernel(capture->graph, function);
    return capture != NULL;
}

bool capture_takes_call(CUstream stream, CUhostFn function, void *data, CUresult *result) {
    const struct capture *capture = capture_of(stream);
    if (capture)
        *result = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                      : graph_add_call(capture->graph, &(CUDA_HOST_NODE_PARAMS){function, data});
    return capture != NULL;
}

bool capture_takes_allocation(CUstream stream, CUdevice device, uint64_t size, CUdeviceptr *address, CUresult *result) {
    const struct capture *capture = capture_of(stream);
    if (capture) {
        *result = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                      : graph_add_allocation(capture->graph, device, size, address);
    }
    return capture != NULL;
}

bool capture_takes_free(CUstream stream, CUdeviceptr address, CUresult *result) {
    const struct capture *capture = capture_of(stream);
    if (capture)
        *result = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : graph_add_free(capture->graph, address);
    return capture != NULL;
}
