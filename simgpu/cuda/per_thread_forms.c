/* The per-thread default stream twins: functions of their own, so that addresses tell them apart, as in the real
 * driver. */
#define _GNU_SOURCE
#include "driver.h"

#define TWIN_OF(symbol, suffix, parameters, arguments) \
    SIM_EXPORT CUresult symbol##suffix parameters { return symbol arguments; }

TWIN_OF(cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), (dptr, bytesize, hStream))
TWIN_OF(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
        (dptr, bytesize, pool, hStream))
TWIN_OF(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
TWIN_OF(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo * mapInfoList, unsigned int count, CUstream hStream),
        (mapInfoList, count, hStream))
TWIN_OF(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
        (dstDevice, srcHost, ByteCount))
TWIN_OF(cuMemcpyDtoH_v2, _ptds, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
        (dstHost, srcDevice, ByteCount))
TWIN_OF(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
        (dstDevice, srcDevice, ByteCount))
TWIN_OF(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
        (dstDevice, srcHost, ByteCount, hStream))
TWIN_OF(cuMemcpyDtoHAsync_v2, _ptsz, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
        (dstHost, srcDevice, ByteCount, hStream))
TWIN_OF(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
        (dstDevice, srcDevice, ByteCount, hStream))
TWIN_OF(cuMemsetD8_v2, _ptds, (CUdeviceptr dstDevice, unsigned char uc, size_t N), (dstDevice, uc, N))
TWIN_OF(cuMemsetD32_v2, _ptds, (CUdeviceptr dstDevice, unsigned int ui, size_t N), (dstDevice, ui, N))
TWIN_OF(cuMemsetD8Async, _ptsz, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream),
        (dstDevice, uc, N, hStream))
TWIN_OF(cuMemsetD32Async, _ptsz, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream),
        (dstDevice, ui, N, hStream))
TWIN_OF(cuStreamSynchronize, _ptsz, (CUstream hStream), (hStream))
TWIN_OF(cuStreamQuery, _ptsz, (CUstream hStream), (hStream))
TWIN_OF(cuStreamIsCapturing, _ptsz, (CUstream hStream, CUstreamCaptureStatus *captureStatus), (hStream, captureStatus))
TWIN_OF(cuStreamWaitEvent, _ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags), (hStream, hEvent, Flags))
TWIN_OF(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream), (hEvent, hStream))
TWIN_OF(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
        (config, f, kernelParams, extra))
TWIN_OF(cuLaunchKernel, _ptsz,
        (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
         unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
         void **kernelParams, void **extra),
        (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams,
         extra))
TWIN_OF(cuLaunchCooperativeKernel, _ptsz,
        (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
         unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
         void **kernelParams),
        (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams))
TWIN_OF(cuGraphInstantiateWithParams, _ptsz,
        (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams),
        (phGraphExec, hGraph, instantiateParams))
TWIN_OF(cuGraphUpload, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
TWIN_OF(cuGraphLaunch, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream))
TWIN_OF(cuStreamGetCtx, _ptsz, (CUstream hStream, CUcontext *pctx), (hStream, pctx))
TWIN_OF(cuStreamGetCtx_v2, _ptsz, (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx),
        (hStream, pCtx, pGreenCtx))
TWIN_OF(cuStreamBeginCapture, _ptsz, (CUstream hStream), (hStream))
TWIN_OF(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
TWIN_OF(cuStreamBeginCaptureToGraph, _ptsz,
        (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
         size_t numDependencies, CUstreamCaptureMode mode),
        (hStream, hGraph, dependencies, dependencyData, numDependencies, mode))
TWIN_OF(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph))
TWIN_OF(cuStreamGetCaptureInfo, _ptsz, (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out),
        (hStream, captureStatus_out, id_out))
TWIN_OF(cuStreamGetCaptureInfo_v2, _ptsz,
        (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
         const CUgraphNode **dependencies_out, size_t *numDependencies_out),
        (hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))
TWIN_OF(cuStreamGetCaptureInfo_v3, _ptsz,
        (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
         const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out),
        (hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out))
