#include "charge/nvml/nvml_usage.h"

#include "process/fork.h"

#include <stdlib.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/gpu_uuid.h"
#include "common/limits.h"
#include "common/log.h"
#include "container/container.h"
#include "driver/function_table.h"

/* The array starts with INITIAL_ENTRIES. If there are more processes, NVML says how many, and SPARE_ENTRIES allow for
 * processes that start before the next of TRIES queries. */
enum { INITIAL_ENTRIES = 64, SPARE_ENTRIES = 16, TRIES = 4 };

/* NVML that is not initialised any more, or could not be, is initialised again at most this often, in ticks: about
 * every 0.1 s, and for at most 1.5 % of the time. */
static uint64_t restart_pause(void) { return clock_ticks_quarter_second() / 2; }
enum { PAUSE_PER_DURATION = 64 };

static bool is_ready;   /* NVML is initialised; atomic, release on set */
static bool is_wanted;  /* nvml_usage_start was called; relaxed atomic */
static bool is_trusted; /* relaxed atomic */

void nvml_usage_start(void) {
    __atomic_store_n(&is_wanted, true, __ATOMIC_RELAXED);
    if (__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) return;
    nvmlReturn_t result = REAL(nvmlInit_v2)(); /* NVML counts initialisations, so two threads may do this at once */
    if (result == NVML_SUCCESS)
        __atomic_store_n(&is_ready, true, __ATOMIC_RELEASE);
    else
        log_debug("nvmlInit_v2 failed with %d: usage is not measured, so contexts and code are not charged",
                  (int)result);
}

static void forget(void) { is_ready = is_wanted = is_trusted = false; }
FORGET_IN_CHILD(forget);

/* NVML may have failed when the process began, its driver may have been loaded anew, or the program may have called
 * nvmlShutdown more often than nvmlInit. */
static bool restart_if_due(void) {
    static uint64_t due;
    uint64_t started = clock_ticks();
    if (!__atomic_load_n(&is_wanted, __ATOMIC_RELAXED) || !clock_take_due_at(&due, restart_pause(), started))
        return false;
    nvml_usage_start();
    uint64_t ended = clock_ticks(), pause = max_u64(restart_pause(), (ended - started) * PAUSE_PER_DURATION);
    __atomic_store_n(&due, ended + pause, __ATOMIC_RELAXED);
    return __atomic_load_n(&is_ready, __ATOMIC_ACQUIRE);
}

bool nvml_usage_is_trusted(void) { return __atomic_load_n(&is_trusted, __ATOMIC_RELAXED); }

void nvml_usage_trust(void) { __atomic_store_n(&is_trusted, true, __ATOMIC_RELAXED); }

static nvmlReturn_t find_device(const uint8_t uuid[UUID_SIZE], nvmlDevice_t *device) {
    char text[GPU_UUID_TEXT];
    gpu_uuid_write(uuid, text);
    return REAL(nvmlDeviceGetHandleByUUID)(text, device);
}

static nvmlReturn_t query(nvmlDevice_t device, struct nvml_usage *usage) {
    return functions_has(FN_nvmlDeviceGetComputeRunningProcesses_v3)
               ? REAL(nvmlDeviceGetComputeRunningProcesses_v3)(device, &usage->count, usage->processes)
               : NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t read_processes(nvmlDevice_t device, struct nvml_usage *usage) {
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned capacity = INITIAL_ENTRIES;
    for (int tries = 0; tries < TRIES && result == NVML_ERROR_INSUFFICIENT_SIZE; tries++) {
        free(usage->processes);
        usage->processes = malloc(capacity * sizeof *usage->processes);
        if (!usage->processes) return NVML_ERROR_MEMORY;
        usage->count = capacity;
        result = query(device, usage);
        capacity = usage->count + SPARE_ENTRIES;
    }
    return result;
}

/* NVML is uninitialised again if the program has called nvmlShutdown more often than nvmlInit. */
static bool has_succeeded(nvmlReturn_t result) {
    if (result == NVML_ERROR_UNINITIALIZED) __atomic_store_n(&is_ready, false, __ATOMIC_RELEASE);
    return result == NVML_SUCCESS;
}

bool nvml_usage_read(const uint8_t uuid[UUID_SIZE], struct nvml_usage *usage) {
    nvmlDevice_t device;
    *usage = (struct nvml_usage){0};
    if (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE) && !restart_if_due()) return false;
    if (has_succeeded(find_device(uuid, &device)) && has_succeeded(read_processes(device, usage))) return true;
    nvml_usage_free(usage);
    return false;
}

void nvml_usage_free(struct nvml_usage *usage) {
    free(usage->processes);
    *usage = (struct nvml_usage){0};
}

bool nvml_usage_read_own(const uint8_t uuid[UUID_SIZE], uint64_t *bytes) {
    struct nvml_usage usage;
    if (!nvml_usage_read(uuid, &usage)) return false;
    bool is_known = nvml_usage_of_process(&usage, container_self().pid, bytes);
    nvml_usage_free(&usage);
    return is_known;
}

bool nvml_usage_of_process(const struct nvml_usage *usage, uint32_t pid, uint64_t *bytes) {
    *bytes = 0;
    for (unsigned i = 0; i < usage->count && *bytes == 0; i++)
        if (usage->processes[i].pid == pid) *bytes = usage->processes[i].usedGpuMemory;
    return *bytes != (uint64_t)NVML_VALUE_NOT_AVAILABLE;
}
