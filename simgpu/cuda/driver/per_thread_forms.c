/* The forms of functions for the per-thread default stream. They are functions of their own, so that their addresses
 * differ, as in a real driver; they do the same as the forms for the legacy stream. */
#include "hardware/export.h"

#include <cuda.h>

#define PER_THREAD_FORM(symbol, suffix, parameters, arguments) \
    EXPORTED CUresult symbol##suffix parameters { return symbol arguments; }

PER_THREAD_FORM(cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
                (dptr, bytesize, hStream))
PER_THREAD_FORM(cuMemAllocFromPoolAsync, _ptsz,
                (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
                (dptr, bytesize, pool, hStream))
PER_THREAD_FORM(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
PER_THREAD_FORM(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo * mapInfoList, unsigned int count, CUstream hStream),
                (mapInfoList, count, hStream))
PER_THREAD_FORM(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), (dst, src, ByteCount))
PER_THREAD_FORM(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
                (dst, src, ByteCount, hStream))
PER_THREAD_FORM(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
                (dstDevice, srcHost, ByteCount))
PER_THREAD_FORM(cuMemcpyDtoH_v2, _ptds, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
                (dstHost, srcDevice, ByteCount))
PER_THREAD_FORM(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
                (dstDevice, srcDevice, ByteCount))
PER_THREAD_FORM(cuMemcpyHtoDAsync_v2, _ptsz,
                (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
                (dstDevice, srcHost, ByteCount, hStream))
PER_THREAD_FORM(cuMemcpyDtoHAsync_v2, _ptsz, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
                (dstHost, srcDevice, ByteCount, hStream))
PER_THREAD_FORM(cuMemcpyDtoDAsync_v2, _ptsz,
                (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
                (dstDevice, srcDevice, ByteCount, hStream))
PER_THREAD_FORM(cuMemsetD8_v2, _ptds, (CUdeviceptr dstDevice, unsigned char uc, size_t N), (dstDevice, uc, N))
PER_THREAD_FORM(cuMemsetD32_v2, _ptds, (CUdeviceptr dstDevice, unsigned int ui, size_t N), (dstDevice, ui, N))
PER_THREAD_FORM(cuMemsetD8Async, _ptsz, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream),
                (dstDevice, uc, N, hStream))
PER_THREAD_FORM(cuMemsetD32Async, _ptsz, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream),
                (dstDevice, ui, N, hStream))
PER_THREAD_FORM(cuStreamSynchronize, _ptsz, (CUstream hStream), (hStream))
PER_THREAD_FORM(cuStreamQuery, _ptsz, (CUstream hStream), (hStream))
PER_THREAD_FORM(cuStreamIsCapturing, _ptsz, (CUstream hStream, CUstreamCaptureStatus *captureStatus),
                (hStream, captureStatus))
PER_THREAD_FORM(cuStreamWaitEvent, _ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags),
                (hStream, hEvent, Flags))
PER_THREAD_FORM(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream), (hEvent, hStream))
PER_THREAD_FORM(cuLaunchKernelEx, _ptsz,
                (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
                (config, f, kernelParams, extra))
PER_THREAD_FORM(cuLaunchKernel, _ptsz,
                (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                 unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                 CUstream hStream, void **kernelParams, void **extra),
                (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                 kernelParams, extra))
PER_THREAD_FORM(cuLaunchCooperativeKernel, _ptsz,
                (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                 unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                 CUstream hStream, void **kernelParams),
                (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                 kernelParams))
PER_THREAD_FORM(cuGraphInstantiateWithParams, _ptsz,
                (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams),
                (phGraphExec, hGraph, instantiateParams))
PER_THREAD_FORM(cuGraphUpload, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
PER_THREAD_FORM(cuGraphLaunch, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
PER_THREAD_FORM(cuStreamGetCtx, _ptsz, (CUstream hStream, CUcontext *pctx), (hStream, pctx))
PER_THREAD_FORM(cuStreamGetCtx_v2, _ptsz, (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx),
                (hStream, pCtx, pGreenCtx))
PER_THREAD_FORM(cuStreamBeginCapture, _ptsz, (CUstream hStream), (hStream))
PER_THREAD_FORM(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
PER_THREAD_FORM(cuStreamBeginCaptureToGraph, _ptsz,
                (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                 const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode),
                (hStream, hGraph, dependencies, dependencyData, numDependencies, mode))
PER_THREAD_FORM(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph))
PER_THREAD_FORM(cuStreamGetCaptureInfo, _ptsz,
                (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out),
                (hStream, captureStatus_out, id_out))
PER_THREAD_FORM(cuStreamGetCaptureInfo_v2, _ptsz,
                (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
                 const CUgraphNode **dependencies_out, size_t *numDependencies_out),
                (hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))
PER_THREAD_FORM(cuStreamGetCaptureInfo_v3, _ptsz,
                (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
                 const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
                 size_t *numDependencies_out),
                (hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out))
