/* The types of the simulated part of NVML. Their layouts come from nvidia-ml-py's pynvml.py, while the limiter is built
 * from NVIDIA's own header: a layout that either gets wrong makes tests fail. */
#ifndef SIMGPU_NVML_TYPES_H
#define SIMGPU_NVML_TYPES_H

#include <assert.h>

typedef unsigned nvmlReturn_t;
enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
#define NVML_MEMORY_V2 0x02000028U

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
    unsigned version, mode, numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;
#define NVML_PROCESS_DETAIL_LIST_V1 0x01000018U

enum { NVML_PROCESS_MODE_COMPUTE = 0, NVML_PROCESS_MODE_MPS = 2, NVML_PROCESS_MODE_ALL = 3 };

typedef struct {
    unsigned pid;
    unsigned long long timeStamp; /* us since 1970 */
    unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned long long timeStamp;
    unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
    unsigned version, processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;
#define NVML_PROCESSES_UTILIZATION_V1 0x01000018U

typedef struct {
    unsigned gpuUtilization, memoryUtilization;
    unsigned long long maxMemoryUsage, time, startTime;
    unsigned isRunning, reserved[5];
} nvmlAccountingStats_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType, nvmlReturn;
    unsigned long long value; /* a union of numbers in NVML */
} nvmlFieldValue_t;

enum { NVML_FI_RECOVERY_ACTION = 230, NVML_VALUE_UNSIGNED_INT = 1 };

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

enum { NVML_EVENT_XID = 8, NVML_NO_INSTANCE = 0xFFFFFFFF };

static_assert(sizeof(nvmlMemory_v2_t) == 40 && sizeof(nvmlPciInfo_t) == 68 && sizeof(nvmlProcessInfo_t) == 24,
              "NVML ABI");
static_assert(sizeof(nvmlFieldValue_t) == 40 && sizeof(nvmlProcessInfo_v1_t) == 16, "NVML ABI");
static_assert(sizeof(nvmlProcessDetail_v1_t) == 32 && sizeof(nvmlProcessDetailList_v1_t) == 24, "NVML ABI");
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32 && sizeof(nvmlProcessUtilizationInfo_v1_t) == 40 &&
                  sizeof(nvmlProcessesUtilizationInfo_v1_t) == 24,
              "NVML ABI");

#endif
