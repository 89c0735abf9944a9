/* The functions of NVML that are simulated, by the file that defines them. */
#ifndef SIMGPU_NVML_FUNCTIONS_H
#define SIMGPU_NVML_FUNCTIONS_H

#include "hardware/export.h"
#include "nvml/types.h"

/* handles.c: initialization and handles */
EXPORTED nvmlReturn_t nvmlInitWithFlags(unsigned flags);
EXPORTED nvmlReturn_t nvmlInit_v2(void);
EXPORTED nvmlReturn_t nvmlInit(void);
EXPORTED nvmlReturn_t nvmlShutdown(void);
EXPORTED nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
EXPORTED nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
EXPORTED nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device);

/* system.c: versions */
EXPORTED nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORTED nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length);
EXPORTED nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
EXPORTED nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);

/* device.c: properties of one device */
EXPORTED nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
EXPORTED nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length);
EXPORTED nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, int *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *answer);
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
EXPORTED nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *temperature);
EXPORTED nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
EXPORTED nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
EXPORTED nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending);
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned nodeSetSize, unsigned long *nodeSet,
                                                  unsigned scope);
EXPORTED nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned cpuSetSize, unsigned long *cpuSet);

/* links.c: connections between devices */
EXPORTED nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *isActive);
EXPORTED nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci);
EXPORTED nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, unsigned index,
                                             unsigned *status);
EXPORTED nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2, unsigned *level);

/* processes.c: processes of a device */
EXPORTED nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                           nvmlProcessInfo_v1_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                              nvmlProcessInfo_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                              nvmlProcessInfo_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                              nvmlProcessInfo_v1_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                                 nvmlProcessInfo_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                                 nvmlProcessInfo_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_v1_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t *infos);
EXPORTED nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t *details);
EXPORTED nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                                      unsigned *count, unsigned long long lastSeenTimeStamp);
EXPORTED nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                            nvmlProcessesUtilizationInfo_v1_t *info);
EXPORTED nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids);
EXPORTED nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, nvmlAccountingStats_t *stats);

/* events.c: events */
EXPORTED nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set);
EXPORTED nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
EXPORTED nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types);
EXPORTED nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set);
EXPORTED nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms);

/* errors.c: descriptions of results */
EXPORTED const char *nvmlErrorString(nvmlReturn_t result);

#endif
