/* Wrappers that list the processes which hold memory of a card. */
#include "driver/function_table.h"
#include "hooks/view/processes.h"

/* Answers one version of a list, which `query.read` asks the driver for. Invalid arguments are left to the driver. */
static nvmlReturn_t answer(struct process_query query, unsigned *count, void *entries) {
    bool is_valid = count && (!*count || entries);
    if (!is_valid || !processes_are_filtered(&query)) return query.read(&query, count, entries);
    return processes_answer(&query, count, entries);
}

static nvmlReturn_t read_compute_v1(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetComputeRunningProcesses)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                         nvmlProcessInfo_v1_t infos[]) {
    return answer(
        (struct process_query){.read = read_compute_v1, .device = device, .layout = LAYOUT(nvmlProcessInfo_v1_t)},
        count, infos);
}

static nvmlReturn_t read_compute_v2(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetComputeRunningProcesses_v2)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_v2_t infos[]) {
    return answer(
        (struct process_query){.read = read_compute_v2, .device = device, .layout = LAYOUT(nvmlProcessInfo_v2_t)},
        count, infos);
}

static nvmlReturn_t read_compute_v3(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetComputeRunningProcesses_v3)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t infos[]) {
    return answer(
        (struct process_query){.read = read_compute_v3, .device = device, .layout = LAYOUT(nvmlProcessInfo_t)}, count,
        infos);
}

static nvmlReturn_t read_graphics_v1(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetGraphicsRunningProcesses)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                          nvmlProcessInfo_v1_t infos[]) {
    return answer(
        (struct process_query){.read = read_graphics_v1, .device = device, .layout = LAYOUT(nvmlProcessInfo_v1_t)},
        count, infos);
}

static nvmlReturn_t read_graphics_v2(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetGraphicsRunningProcesses_v2)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_v2_t infos[]) {
    return answer(
        (struct process_query){.read = read_graphics_v2, .device = device, .layout = LAYOUT(nvmlProcessInfo_v2_t)},
        count, infos);
}

static nvmlReturn_t read_graphics_v3(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetGraphicsRunningProcesses_v3)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t infos[]) {
    return answer(
        (struct process_query){.read = read_graphics_v3, .device = device, .layout = LAYOUT(nvmlProcessInfo_t)}, count,
        infos);
}

static nvmlReturn_t read_mps_v1(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetMPSComputeRunningProcesses)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_v1_t infos[]) {
    return answer((struct process_query){.read = read_mps_v1, .device = device, .layout = LAYOUT(nvmlProcessInfo_v1_t)},
                  count, infos);
}

static nvmlReturn_t read_mps_v2(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetMPSComputeRunningProcesses_v2)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_v2_t infos[]) {
    return answer((struct process_query){.read = read_mps_v2, .device = device, .layout = LAYOUT(nvmlProcessInfo_v2_t)},
                  count, infos);
}

static nvmlReturn_t read_mps_v3(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetMPSComputeRunningProcesses_v3)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t infos[]) {
    return answer((struct process_query){.read = read_mps_v3, .device = device, .layout = LAYOUT(nvmlProcessInfo_t)},
                  count, infos);
}

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
