/* Captures: a call in a captured stream adds a node to a graph, and does nothing else. */
#ifndef SIMGPU_CUDA_GRAPH_CAPTURE_H
#define SIMGPU_CUDA_GRAPH_CAPTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct capture {
    struct capture *next;
    uint64_t number;
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    const void *thread; /* that began the capture */
    bool is_invalid;
};

struct capture *capture_numbered(uint64_t number); /* NULL once the capture has ended */
struct capture *capture_of(CUstream stream);       /* NULL when the stream is not captured */

/* For a call that could make a captured stream wait. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED when a capture forbids the
 * call to this thread; captures that forbid it are then invalid. */
CUresult capture_forbids(void);
/* Like capture_forbids, for a call that concerns one stream only: forbidden when that stream is captured. */
CUresult capture_forbids_in(CUstream stream);

/* For an asynchronous call: returns false when the stream is not captured. Otherwise adds the node and sets `result`.
 */
bool capture_takes(CUstream stream, CUgraphNodeType type, CUresult *result);
bool capture_takes_kernel(CUstream stream, CUfunction function, CUresult *result);
bool capture_takes_call(CUstream stream, CUhostFn function, void *data, CUresult *result);
bool capture_takes_allocation(CUstream stream, CUdevice device, uint64_t size, CUdeviceptr *address, CUresult *result);
bool capture_takes_free(CUstream stream, CUdeviceptr address, CUresult *result);

#endif
