/* How busy which processes keep a card, now and over their lives. */
#include "driver/function_table.h"
#include "hooks/view/processes.h"

/* Where none of the samples is ours, there are none. */
static nvmlReturn_t answer_samples(const struct question *question, unsigned *count, void *samples) {
    nvmlReturn_t result = processes_answer(question, count, samples);
    return result == NVML_SUCCESS && *count == 0 ? NVML_ERROR_NOT_FOUND : result;
}

static nvmlReturn_t ask_samples(const struct question *question, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetProcessUtilization)(question->device, entries, count, question->last_seen);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long last_seen) {
    struct question question = {.ask = ask_samples,
                                .device = device,
                                .layout = BARE_LAYOUT(nvmlProcessUtilizationSample_t),
                                .last_seen = last_seen};
    if (!count || !processes_shown(&question))
        return REAL(nvmlDeviceGetProcessUtilization)(device, samples, count, last_seen);
    return answer_samples(&question, count, samples);
}

static nvmlReturn_t ask_utilisation(const struct question *question, unsigned *count, void *entries) {
    nvmlProcessesUtilizationInfo_t info = {nvmlProcessesUtilizationInfo_v1, *count, question->last_seen, entries};
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessesUtilizationInfo)(question->device, &info);
    *count = info.processSamplesCount;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info) {
    struct question question = {
        .ask = ask_utilisation, .device = device, .layout = BARE_LAYOUT(nvmlProcessUtilizationInfo_v1_t)};
    if (!info || !processes_shown(&question)) return REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, info);
    if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    question.last_seen = info->lastSeenTimeStamp;
    return answer_samples(&question, &info->processSamplesCount, info->procUtilArray);
}

static nvmlReturn_t ask_accounted(const struct question *question, unsigned *count, void *entries) {
    return REAL(nvmlDeviceGetAccountingPids)(question->device, count, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids) {
    struct question question = {.ask = ask_accounted, .device = device, .layout = {sizeof *pids, 0, NO_MEMORY}};
    if (!count || !processes_shown(&question)) return REAL(nvmlDeviceGetAccountingPids)(device, count, pids);
    return processes_answer(&question, count, pids);
}

/* Of one process: what is not ours is not there. */
static nvmlReturn_t hide_others(nvmlReturn_t result, nvmlDevice_t device, unsigned pid) {
    struct question question = {.device = device};
    unsigned long long memory;
    if (result != NVML_SUCCESS || !processes_shown(&question) || processes_is_ours(&question, pid, &memory))
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
