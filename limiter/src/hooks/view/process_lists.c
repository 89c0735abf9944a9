/* Wrappers that list the processes which hold memory of a card. */
#include "driver/function_table.h"
#include "hooks/view/processes.h"

/* Defines the wrapper of one version of a list. Invalid arguments are left to the driver. */
#define LIST(name, Info)                                                                                              \
    static nvmlReturn_t read_##name(const struct process_query *query, unsigned *count, void *entries) {              \
        return REAL(name)(query->device, count, entries);                                                             \
    }                                                                                                                 \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, Info infos[]) {                                    \
        struct process_query query = {.read = read_##name, .device = device, .layout = LAYOUT(Info)};                 \
        if (!count || (*count && !infos) || !processes_are_filtered(&query)) return REAL(name)(device, count, infos); \
        return processes_answer(&query, count, infos);                                                                \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

static nvmlReturn_t read_details(const struct process_query *query, unsigned *count, void *entries) {
    nvmlProcessDetailList_t list = {nvmlProcessDetailList_v1, query->mode, *count, entries};
    nvmlReturn_t result = REAL(nvmlDeviceGetRunningProcessDetailList)(query->device, &list);
    *count = list.numProcArrayEntries;
    return result;
}

/* The layout of an unknown version could not be filtered, so it is refused as an older driver refuses it. */
EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list) {
    struct process_query query = {.read = read_details, .device = device, .layout = LAYOUT(nvmlProcessDetail_v1_t)};
    if (!list || !processes_are_filtered(&query)) return REAL(nvmlDeviceGetRunningProcessDetailList)(device, list);
    if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    query.mode = list->mode;
    return processes_answer(&query, &list->numProcArrayEntries, list->procArray);
}
