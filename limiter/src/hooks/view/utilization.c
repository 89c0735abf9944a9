/* Wrappers that tell how busy each process keeps a card, lately (utilisation) and over its life (accounting). */
#include "driver/function_table.h"
#include "hooks/view/processes.h"

/* NVML reports an empty set of samples as NVML_ERROR_NOT_FOUND. */
static nvmlReturn_t answer_samples(const struct process_query *query, unsigned *count, void *samples) {
    nvmlReturn_t result = processes_answer(query, count, samples);
    return result == NVML_SUCCESS && *count == 0 ? NVML_ERROR_NOT_FOUND : result;
}

static nvmlReturn_t read_samples(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetProcessUtilization)(query->device, entries, count, query->last_seen);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long last_seen) {
    struct process_query query = {.read = read_samples,
                                  .device = device,
                                  .layout = BARE_LAYOUT(nvmlProcessUtilizationSample_t),
                                  .last_seen = last_seen};
    if (!count || !processes_are_filtered(&query))
        return REAL(nvmlDeviceGetProcessUtilization)(device, samples, count, last_seen);
    return answer_samples(&query, count, samples);
}

static nvmlReturn_t read_utilisation(const struct process_query *query, unsigned *count, void *entries) {
    nvmlProcessesUtilizationInfo_t info = {nvmlProcessesUtilizationInfo_v1, *count, query->last_seen, entries};
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessesUtilizationInfo)(query->device, &info);
    *count = info.processSamplesCount;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info) {
    struct process_query query = {
        .read = read_utilisation, .device = device, .layout = BARE_LAYOUT(nvmlProcessUtilizationInfo_v1_t)};
    if (!info || !processes_are_filtered(&query)) return REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, info);
    if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    query.last_seen = info->lastSeenTimeStamp;
    return answer_samples(&query, &info->processSamplesCount, info->procUtilArray);
}

static nvmlReturn_t read_accounted(const struct process_query *query, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetAccountingPids)(query->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids) {
    struct process_query query = {.read = read_accounted, .device = device, .layout = {sizeof *pids, 0, NO_MEMORY}};
    if (!count || !processes_are_filtered(&query)) return REAL(nvmlDeviceGetAccountingPids)(device, count, pids);
    return processes_answer(&query, count, pids);
}

/* A process of another container is reported as not found. */
static nvmlReturn_t hide_others(nvmlReturn_t result, nvmlDevice_t device, unsigned pid) {
    struct process_query query = {.device = device};
    unsigned long long memory;
    if (result != NVML_SUCCESS || !processes_are_filtered(&query) || processes_is_ours(&query, pid, &memory))
        return result;
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, nvmlAccountingStats_t *stats) {
    nvmlAccountingStats_t found;
    if (!stats) return REAL(nvmlDeviceGetAccountingStats)(device, pid, stats);
    nvmlReturn_t result = REAL(nvmlDeviceGetAccountingStats)(device, pid, &found);
    result = hide_others(result, device, pid);
    if (result == NVML_SUCCESS) *stats = found;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats) {
    if (!stats) return REAL(nvmlDeviceGetAccountingStats_v2)(device, stats);
    nvmlAccountingStats_v2_t found = {.pid = stats->pid};
    nvmlReturn_t result = REAL(nvmlDeviceGetAccountingStats_v2)(device, &found);
    result = hide_others(result, device, found.pid);
    if (result == NVML_SUCCESS) *stats = found;
    return result;
}
