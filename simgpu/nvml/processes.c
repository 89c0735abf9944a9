/* The processes of a device: the memory that each holds, and how busy each keeps the device. The lists of
 * graphics processes are empty. */
#include <stdlib.h>
#include <time.h>

#include "ledger/accounts.h"
#include "nvml/functions.h"
#include "nvml/handles.h"
#include "nvml/lists.h"

#define SAMPLE_FOR_NS UINT64_C(6000000000) /* a sample is this old at most */

/* Lists the processes that hold memory on the card. A process without a context is not listed, although its pools and
 * its physical memory stay on the card (measured on an H200, driver 580). */
static unsigned holders_of(const struct card *card, struct ledger_process out[MAX_PROCESSES]) {
    unsigned known = out ? ledger_processes(card->uuid, out, MAX_PROCESSES) : 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < known; i++)
        if (out[i].bytes != 0 && out[i].contexts != 0) out[kept++] = out[i];
    return kept;
}

/* Of an MPS server on each card that a client of it uses (measured on an H200, driver 580). A simulated server takes
 * nothing of the card. */
#define SERVER_BYTES (UINT64_C(66) << 20)

/* Whether one of the first `count` processes is this one. */
static bool has(const struct ledger_process *processes, unsigned count, unsigned pid) {
    for (unsigned i = 0; i < count; i++)
        if (processes[i].pid == pid) return true;
    return false;
}

/* Clients, their servers, and processes outside of MPS. */
static unsigned holders_and_servers_of(const struct card *card, struct ledger_process out[MAX_PROCESSES]) {
    unsigned clients = holders_of(card, out);
    unsigned known = clients;
    for (unsigned i = 0; i < clients && known < MAX_PROCESSES; i++)
        if (out[i].server != 0 && !has(out, known, out[i].server))
            out[known++] = (struct ledger_process){.bytes = SERVER_BYTES, .pid = out[i].server, .contexts = 1};
    return known;
}

/* Clients only. */
static unsigned clients_of(const struct card *card, struct ledger_process out[MAX_PROCESSES]) {
    unsigned known = holders_of(card, out);
    unsigned kept = 0;
    for (unsigned i = 0; i < known; i++)
        if (out[i].server != 0) out[kept++] = out[i];
    return kept;
}

/* Sets `count` to the number of entries. NVML_SUCCESS when the caller's array has room for them. */
static nvmlReturn_t fit(unsigned known, unsigned *count, const void *array) {
    unsigned given = *count;
    *count = known;
    return known > given || (known > 0 && !array) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

typedef unsigned lister(const struct card *card, struct ledger_process out[MAX_PROCESSES]);

/* Lists processes of a device; the result says whether the caller's array has room for them. */
static nvmlReturn_t find(nvmlDevice_t device, const char *function, lister *listed, unsigned *count, const void *array,
                         struct ledger_process found[]) {
    struct card card;
    nvmlReturn_t result = nvml_enter_card(function, device, &card);
    if (result != NVML_SUCCESS || !count) return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    return fit(listed(&card, found), count, array);
}

static nvmlReturn_t list_old(nvmlDevice_t device, const char *function, lister *listed, unsigned *count,
                             nvmlProcessInfo_v1_t *infos) {
    FREED_AT_END struct ledger_process *found = nvml_list(MAX_PROCESSES, sizeof *found);
    nvmlReturn_t result = find(device, function, listed, count, infos, found);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){found[i].pid, found[i].bytes};
    return result;
}

static nvmlReturn_t list(nvmlDevice_t device, const char *function, lister *listed, unsigned *count,
                         nvmlProcessInfo_t *infos) {
    FREED_AT_END struct ledger_process *found = nvml_list(MAX_PROCESSES, sizeof *found);
    nvmlReturn_t result = find(device, function, listed, count, infos, found);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        infos[i] = (nvmlProcessInfo_t){found[i].pid, found[i].bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
    return result;
}

static nvmlReturn_t list_none(nvmlDevice_t device, const char *function, unsigned *count) {
    struct card card;
    nvmlReturn_t result = nvml_enter_card(function, device, &card);
    if (result != NVML_SUCCESS || !count) return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                         nvmlProcessInfo_v1_t *infos) {
    return list_old(device, __func__, holders_and_servers_of, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos) {
    return list(device, __func__, holders_and_servers_of, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos) {
    return list(device, __func__, holders_and_servers_of, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_v1_t *infos) {
    return list_old(device, __func__, clients_of, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t *infos) {
    return list(device, __func__, clients_of, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t *infos) {
    return list(device, __func__, clients_of, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                          nvmlProcessInfo_v1_t *infos) {
    (void)infos;
    return list_none(device, __func__, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t *infos) {
    (void)infos;
    return list_none(device, __func__, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t *infos) {
    (void)infos;
    return list_none(device, __func__, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t *details) {
    struct card card;
    FREED_AT_END struct ledger_process *found = nvml_list(MAX_PROCESSES, sizeof *found);
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!details || details->mode > NVML_PROCESS_MODE_ALL) return NVML_ERROR_INVALID_ARGUMENT;
    if (details->version != NVML_PROCESS_DETAIL_LIST_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    bool is_compute = details->mode == NVML_PROCESS_MODE_COMPUTE || details->mode == NVML_PROCESS_MODE_ALL;
    unsigned known = is_compute ? holders_and_servers_of(&card, found) : 0;
    nvmlReturn_t result = fit(known, &details->numProcArrayEntries, details->procArray);
    for (unsigned i = 0; result == NVML_SUCCESS && i < known; i++) {
        details->procArray[i] =
            (nvmlProcessDetail_v1_t){found[i].pid, found[i].bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    }
    return result;
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Clients of an MPS server have no samples of their own: the server has them (measured on an H200, driver 580). */
static unsigned merge_clients(struct ledger_process *processes, unsigned count) {
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        struct ledger_process process = processes[i];
        if (process.server != 0) process.pid = process.server;
        unsigned at = 0;
        while (at < kept && processes[at].pid != process.pid) at++;
        if (at < kept && processes[at].busy_until > process.busy_until) continue;
        processes[at] = process;
        kept += at == kept;
    }
    return kept;
}

/* Takes the last sample of each process that launched work recently. A busy process has a sample of now; all busy
 * processes have equal utilization. Any other process has a sample of the time when its work ended. Returns the number
 * of samples younger than `seen_us`. */
static unsigned sample(const struct card *card, uint64_t seen_us, nvmlProcessUtilizationSample_t out[MAX_PROCESSES]) {
    FREED_AT_END struct ledger_process *found = nvml_list(MAX_PROCESSES, sizeof *found);
    unsigned known = found && out ? merge_clients(found, ledger_processes(card->uuid, found, MAX_PROCESSES)) : 0;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t to_wall = clock_ns(CLOCK_REALTIME) - now;
    unsigned busy = 0;
    unsigned taken = 0;
    for (unsigned i = 0; i < known; i++) busy += found[i].busy_until > now;
    for (unsigned i = 0; i < known; i++) {
        uint64_t at = found[i].busy_until < now ? found[i].busy_until : now;
        uint64_t stamp_us = (at + to_wall) / 1000;
        if (at != 0 && at + SAMPLE_FOR_NS > now && stamp_us > seen_us) {
            unsigned among = at == now && busy > 0 ? busy : 1;
            out[taken++] =
                (nvmlProcessUtilizationSample_t){.pid = found[i].pid, .timeStamp = stamp_us, .smUtil = 100 / among};
        }
    }
    return taken;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                                    unsigned *count, unsigned long long lastSeenTimeStamp) {
    struct card card;
    FREED_AT_END nvmlProcessUtilizationSample_t *taken = nvml_list(MAX_PROCESSES, sizeof *taken);
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned known = sample(&card, lastSeenTimeStamp, taken);
    nvmlReturn_t result = known == 0 ? NVML_ERROR_NOT_FOUND : fit(known, count, utilization);
    for (unsigned i = 0; result == NVML_SUCCESS && i < known; i++) utilization[i] = taken[i];
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_v1_t *info) {
    struct card card;
    FREED_AT_END nvmlProcessUtilizationSample_t *taken = nvml_list(MAX_PROCESSES, sizeof *taken);
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!info) return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_PROCESSES_UTILIZATION_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned known = sample(&card, info->lastSeenTimeStamp, taken);
    nvmlReturn_t result =
        known == 0 ? NVML_ERROR_NOT_FOUND : fit(known, &info->processSamplesCount, info->procUtilArray);
    for (unsigned i = 0; result == NVML_SUCCESS && i < known; i++) {
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = taken[i].timeStamp, .pid = taken[i].pid, .smUtil = taken[i].smUtil};
    }
    return result;
}

/* Accounting is enabled, and knows the processes that hold memory. */
EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids) {
    struct card card;
    FREED_AT_END struct ledger_process *found = nvml_list(MAX_PROCESSES, sizeof *found);
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = fit(holders_of(&card, found), count, pids);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++) pids[i] = found[i].pid;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, nvmlAccountingStats_t *stats) {
    struct card card;
    FREED_AT_END struct ledger_process *found = nvml_list(MAX_PROCESSES, sizeof *found);
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!stats) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned known = holders_of(&card, found);
    for (unsigned i = 0; i < known; i++) {
        if (found[i].pid == pid) {
            *stats = (nvmlAccountingStats_t){.maxMemoryUsage = found[i].bytes, .isRunning = 1};
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}
