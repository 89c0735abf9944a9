/* The driver's functions, found by their exported names, and the last failure. */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#define __CUDA_API_VERSION_INTERNAL /* cuda.h declares every form of a function under its own name */
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUNCTIONS(X)                      \
    X(cuInit)                             \
    X(cuDriverGetVersion)                 \
    X(cuDeviceGetName)                    \
    X(cuDeviceGetAttribute)               \
    X(cuDeviceTotalMem_v2)                \
    X(cuDevicePrimaryCtxRetain)           \
    X(cuDevicePrimaryCtxRelease_v2)       \
    X(cuCtxSetCurrent)                    \
    X(cuCtxSynchronize)                   \
    X(cuCtxEnablePeerAccess)              \
    X(cuCtxCreate_v2)                     \
    X(cuCtxDestroy_v2)                    \
    X(cuCtxSetLimit)                      \
    X(cuCtxGetLimit)                      \
    X(cuMemGetInfo_v2)                    \
    X(cuMemAlloc)                         \
    X(cuMemFree)                          \
    X(cuMemAlloc_v2)                      \
    X(cuMemFree_v2)                       \
    X(cuMemAllocPitch_v2)                 \
    X(cuMemAllocManaged)                  \
    X(cuMemAllocHost_v2)                  \
    X(cuMemFreeHost)                      \
    X(cuMemHostAlloc)                     \
    X(cuMemHostRegister_v2)               \
    X(cuMemsetD8_v2)                      \
    X(cuMemcpyDtoH_v2)                    \
    X(cuMemcpyHtoDAsync_v2)               \
    X(cuMemAllocAsync)                    \
    X(cuMemAllocAsync_ptsz)               \
    X(cuMemAllocFromPoolAsync)            \
    X(cuMemAllocFromPoolAsync_ptsz)       \
    X(cuMemFreeAsync)                     \
    X(cuMemFreeAsync_ptsz)                \
    X(cuMemPoolCreate)                    \
    X(cuMemPoolDestroy)                   \
    X(cuMemPoolTrimTo)                    \
    X(cuMemPoolSetAttribute)              \
    X(cuMemPoolSetAccess)                 \
    X(cuMemPoolExportToShareableHandle)   \
    X(cuMemPoolImportFromShareableHandle) \
    X(cuMemPoolExportPointer)             \
    X(cuMemPoolImportPointer)             \
    X(cuMemCreate)                        \
    X(cuMemRelease)                       \
    X(cuMemRetainAllocationHandle)        \
    X(cuMemAddressReserve)                \
    X(cuMemAddressFree)                   \
    X(cuMemMap)                           \
    X(cuMemUnmap)                         \
    X(cuMemSetAccess)                     \
    X(cuMemExportToShareableHandle)       \
    X(cuMemImportFromShareableHandle)     \
    X(cuMemMapArrayAsync)                 \
    X(cuArrayCreate_v2)                   \
    X(cuArray3DCreate_v2)                 \
    X(cuArrayDestroy)                     \
    X(cuArrayGetMemoryRequirements)       \
    X(cuMipmappedArrayCreate)             \
    X(cuMipmappedArrayDestroy)            \
    X(cuGraphCreate)                      \
    X(cuGraphDestroy)                     \
    X(cuGraphAddKernelNode_v2)            \
    X(cuGraphAddMemAllocNode)             \
    X(cuGraphInstantiateWithFlags)        \
    X(cuGraphUpload)                      \
    X(cuGraphLaunch)                      \
    X(cuGraphExecDestroy)                 \
    X(cuDeviceGraphMemTrim)               \
    X(cuDeviceGetDevResource)             \
    X(cuDevSmResourceSplitByCount)        \
    X(cuDevResourceGenerateDesc)          \
    X(cuGreenCtxCreate)                   \
    X(cuGreenCtxDestroy)                  \
    X(cuCtxFromGreenCtx)                  \
    X(cuImportExternalMemory)             \
    X(cuExternalMemoryGetMappedBuffer)    \
    X(cuDestroyExternalMemory)            \
    X(cuCheckpointProcessGetState)        \
    X(cuCheckpointProcessLock)            \
    X(cuCheckpointProcessCheckpoint)      \
    X(cuCheckpointProcessRestore)         \
    X(cuCheckpointProcessUnlock)          \
    X(cuIpcGetMemHandle)                  \
    X(cuIpcOpenMemHandle_v2)              \
    X(cuIpcCloseMemHandle)                \
    X(cuStreamCreate)                     \
    X(cuStreamDestroy_v2)                 \
    X(cuStreamBeginCapture_v2)            \
    X(cuStreamEndCapture)                 \
    X(cuLibraryLoadData)                  \
    X(cuLibraryGetGlobal)                 \
    X(cuLibraryGetKernel)                 \
    X(cuLibraryUnload)                    \
    X(cuLinkCreate_v2)                    \
    X(cuLinkAddData_v2)                   \
    X(cuLinkAddFile_v2)                   \
    X(cuLinkComplete)                     \
    X(cuModuleLoadData)                   \
    X(cuModuleUnload)                     \
    X(cuModuleGetFunction)                \
    X(cuModuleGetGlobal_v2)               \
    X(cuLaunchKernel)                     \
    X(cuLaunchKernel_ptsz)                \
    X(cuLaunchCooperativeKernel)          \
    X(cuStreamSynchronize)                \
    X(cuEventCreate)                      \
    X(cuEventDestroy_v2)                  \
    X(cuEventElapsedTime)                 \
    X(cuEventQuery)                       \
    X(cuEventRecord)                      \
    X(cuEventSynchronize)

#define FIELD(name) __typeof__(&(name)) name##_;
struct calls {
    FUNCTIONS(FIELD)
};
#undef FIELD

extern struct calls calls;

/* The result of a function that the driver lacks; no CUresult has this value. */
#define MISSING ((CUresult)(-1))

/* The result and the name of the call that failed; CUDA_SUCCESS and "" after forget_failure. */
struct failure {
    CUresult result;
    const char *function;
};
extern struct failure failure;
void forget_failure(void);

/* Records a failure; returns whether the call succeeded. */
bool did(const char *function, CUresult result);
#define DO(name, ...) did(#name, calls.name##_(__VA_ARGS__))

/* Opens libcuda.so.1; false when there is none. */
bool calls_open(void);

/* Time of this thread in the driver's own functions; 0 when driver_time.c does not measure it. */
uint64_t calls_spent_ns(void);

#endif
