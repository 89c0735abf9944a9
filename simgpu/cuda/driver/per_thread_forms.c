/* The forms of functions for the per-thread default stream. They are functions of their own, so that their addresses
 * differ, as in a real driver. NULL means the default stream of the thread there. */
#include <cuda.h>

#include "hardware/export.h"

static CUstream of_thread(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t size, CUstream stream) {
    return cuMemAllocAsync(address, size, of_thread(stream));
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream) {
    return cuMemAllocFromPoolAsync(address, size, pool, of_thread(stream));
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
    return cuMemFreeAsync(address, of_thread(stream));
}

EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *maps, unsigned count, CUstream stream) {
    return cuMemMapArrayAsync(maps, count, of_thread(stream));
}

EXPORT CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) { return cuMemcpy(to, from, size); }

EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return cuMemcpyAsync(to, from, size, of_thread(stream));
}

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size) {
    return cuMemcpyHtoD_v2(to, from, size);
}

EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoH_v2(to, from, size);
}

EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoD_v2(to, from, size);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    return cuMemcpyHtoDAsync_v2(to, from, size, of_thread(stream));
}

EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    return cuMemcpyDtoHAsync_v2(to, from, size, of_thread(stream));
}

EXPORT CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return cuMemcpyDtoDAsync_v2(to, from, size, of_thread(stream));
}

EXPORT CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) {
    return cuMemsetD8_v2(to, value, count);
}

EXPORT CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned value, size_t count) {
    return cuMemsetD32_v2(to, value, count);
}

EXPORT CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return cuMemsetD8Async(to, value, count, of_thread(stream));
}

EXPORT CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return cuMemsetD32Async(to, value, count, of_thread(stream));
}

EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) { return cuStreamSynchronize(of_thread(stream)); }

EXPORT CUresult cuStreamQuery_ptsz(CUstream stream) { return cuStreamQuery(of_thread(stream)); }

EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status) {
    return cuStreamIsCapturing(of_thread(stream), status);
}

EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
    return cuStreamWaitEvent(of_thread(stream), event, flags);
}

EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) { return cuEventRecord(event, of_thread(stream)); }

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra) {
    if (!config) return cuLaunchKernelEx(config, f, parameters, extra);
    CUlaunchConfig own = *config;
    own.hStream = of_thread(config->hStream);
    return cuLaunchKernelEx(&own, f, parameters, extra);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                    unsigned block_y, unsigned block_z, unsigned shared_size, CUstream stream,
                                    void **parameters, void **extra) {
    return cuLaunchKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size, of_thread(stream),
                          parameters, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z,
                                               unsigned shared_size, CUstream stream, void **parameters) {
    return cuLaunchCooperativeKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size,
                                     of_thread(stream), parameters);
}

EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *instance, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    return cuGraphInstantiateWithParams(instance, graph, parameters);
}

EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec instance, CUstream stream) {
    return cuGraphUpload(instance, of_thread(stream));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec instance, CUstream stream) {
    return cuGraphLaunch(instance, of_thread(stream));
}

EXPORT CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *context) {
    return cuStreamGetCtx(of_thread(stream), context);
}

EXPORT CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *context, CUgreenCtx *green) {
    return cuStreamGetCtx_v2(of_thread(stream), context, green);
}

EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream) { return cuStreamBeginCapture(of_thread(stream)); }

EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
    return cuStreamBeginCapture_v2(of_thread(stream), mode);
}

EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) {
    return cuStreamBeginCaptureToGraph(of_thread(stream), graph, dependencies, edges, count, mode);
}

EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
    return cuStreamEndCapture(of_thread(stream), graph);
}

EXPORT CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {
    return cuStreamGetCaptureInfo(of_thread(stream), status, id);
}

EXPORT CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                               CUgraph *graph, const CUgraphNode **dependencies, size_t *count) {
    return cuStreamGetCaptureInfo_v2(of_thread(stream), status, id, graph, dependencies, count);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                               CUgraph *graph, const CUgraphNode **dependencies,
                                               const CUgraphEdgeData **edges, size_t *count) {
    return cuStreamGetCaptureInfo_v3(of_thread(stream), status, id, graph, dependencies, edges, count);
}

EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data) {
    return cuLaunchHostFunc(of_thread(stream), function, data);
}

EXPORT CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void *data, unsigned flags) {
    return cuStreamAddCallback(of_thread(stream), function, data, flags);
}

EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t size) {
    return cuMemcpyPeer(to, to_context, from, from_context, size);
}

EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                       size_t size, CUstream stream) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, size, of_thread(stream));
}
