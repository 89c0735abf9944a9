#include "charge/nvml_usage.h"

#include <stdlib.h>

#include "common/limits.h"
#include "common/log.h"
#include "driver/function_table.h"

/* Room for so many processes is tried first; NVML says where there are more, and a few may come meanwhile. */
enum { FIRST_ROOM = 64, SPARE_ROOM = 16, TRIES = 4 };

static bool is_ready;   /* atomically */
static bool is_trusted; /* atomically */

void measure_start(void) {
    if (__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) return;
    nvmlReturn_t result = REAL(nvmlInit_v2)(); /* counted by NVML: two threads at once do no harm */
    if (result == NVML_SUCCESS)
        __atomic_store_n(&is_ready, true, __ATOMIC_RELEASE);
    else
        log_debug("NVML says %d: memory is counted, not measured", (int)result);
}

void measure_forget(void) { is_ready = is_trusted = false; }

bool measure_is_trusted(void) { return __atomic_load_n(&is_trusted, __ATOMIC_RELAXED); }

void measure_trust(void) { __atomic_store_n(&is_trusted, true, __ATOMIC_RELAXED); }

static nvmlReturn_t find_device(const uint8_t uuid[UUID_SIZE], nvmlDevice_t *device) {
    char text[UUID_TEXT];
    limits_write_uuid(uuid, text);
    return REAL(nvmlDeviceGetHandleByUUID)(text, device);
}

static nvmlReturn_t ask(nvmlDevice_t device, struct figures *figures) {
    return hooks_has(FN_nvmlDeviceGetComputeRunningProcesses_v3)
               ? REAL(nvmlDeviceGetComputeRunningProcesses_v3)(device, &figures->count, figures->list)
               : NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* Asks again with more room while NVML says that there is too little. */
static nvmlReturn_t list(nvmlDevice_t device, struct figures *figures) {
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned room = FIRST_ROOM;
    for (int tries = 0; tries < TRIES && result == NVML_ERROR_INSUFFICIENT_SIZE; tries++) {
        free(figures->list);
        figures->list = malloc(room * sizeof *figures->list);
        if (!figures->list) return NVML_ERROR_MEMORY;
        figures->count = room;
        result = ask(device, figures);
        room = figures->count + SPARE_ROOM;
    }
    return result;
}

/* The program may have ended NVML more often than it began it. */
static bool is_good(nvmlReturn_t result) {
    if (result == NVML_ERROR_UNINITIALIZED) __atomic_store_n(&is_ready, false, __ATOMIC_RELEASE);
    return result == NVML_SUCCESS;
}

bool measure_card(const uint8_t uuid[UUID_SIZE], struct figures *figures) {
    nvmlDevice_t device;
    *figures = (struct figures){0};
    if (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) return false;
    if (is_good(find_device(uuid, &device)) && is_good(list(device, figures))) return true;
    measure_free(figures);
    return false;
}

void measure_free(struct figures *figures) {
    free(figures->list);
    *figures = (struct figures){0};
}

bool measure_of(const struct figures *figures, uint32_t pid, uint64_t *bytes) {
    *bytes = 0;
    for (unsigned i = 0; i < figures->count && *bytes == 0; i++)
        if (figures->list[i].pid == pid) *bytes = figures->list[i].usedGpuMemory;
    return *bytes != (uint64_t)NVML_VALUE_NOT_AVAILABLE;
}
