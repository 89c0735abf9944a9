/* Events. A line `xid UUID CODE` that is appended to the file `events` is delivered to each set created before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "hardware/state_directory.h"
#include "nvml/functions.h"
#include "nvml/handles.h"

#define POLL_NS 10000000

struct nvmlEventSet_st {
    long offset; /* in the file, of the first line that is not delivered yet */
    unsigned count;
    nvmlDevice_t device[MAX_CARDS];
};

static void events_path(char out[STATE_PATH_SIZE]) { state_directory_path(out, "events"); }

static long events_size(void) {
    char path[STATE_PATH_SIZE];
    struct stat found;
    events_path(path);
    return stat(path, &found) == 0 ? (long)found.st_size : 0;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    nvmlReturn_t result = nvml_enter(__func__);
    if (result != NVML_SUCCESS || !set) return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    if (!*set) return NVML_ERROR_MEMORY;
    (*set)->offset = events_size();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!types) return NVML_ERROR_INVALID_ARGUMENT;
    *types = NVML_EVENT_XID;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!set || set->count == MAX_CARDS) return NVML_ERROR_INVALID_ARGUMENT;
    if ((types & ~(unsigned long long)NVML_EVENT_XID) != 0) return NVML_ERROR_NOT_SUPPORTED;
    set->device[set->count++] = device;
    return NVML_SUCCESS;
}

static nvmlDevice_t registered(const struct nvmlEventSet_st *set, const char *uuid) {
    for (unsigned i = 0; i < set->count; i++)
        if (strcmp(set->device[i]->uuid, uuid) == 0) return set->device[i];
    return NULL;
}

static bool parse_event(const struct nvmlEventSet_st *set, const char *line, nvmlEventData_t *data) {
    char uuid[UUID_SIZE];
    int length = 0;
    if (sscanf(line, "xid %47s %n", uuid, &length) != 1) return false;
    char *end;
    unsigned long long code = strtoull(line + length, &end, 10);
    if (end == line + length) return false;
    *data = (nvmlEventData_t){registered(set, uuid), NVML_EVENT_XID, code, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
    return data->device != NULL;
}

/* Finds the next event of this set. A line without a newline is still being written. */
static bool next_event(nvmlEventSet_t set, nvmlEventData_t *data) {
    char path[STATE_PATH_SIZE];
    char line[256];
    bool found = false;
    events_path(path);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    (void)fseek(file, set->offset, SEEK_SET);
    while (!found && fgets(line, sizeof line, file) && strchr(line, '\n')) {
        set->offset = ftell(file);
        found = parse_event(set, line, data);
    }
    (void)fclose(file);
    return found;
}

static bool any_lost(const struct nvmlEventSet_st *set) {
    struct card card;
    for (unsigned i = 0; i < set->count; i++)
        if (!card_find(set->device[i]->uuid, &card) || !card.is_healthy) return true;
    return false;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms) {
    const struct timespec pause = {.tv_nsec = POLL_NS};
    nvmlReturn_t result = nvml_enter(__func__);
    if (result != NVML_SUCCESS || !set || !data) return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    for (uint64_t waited = 0;; waited += POLL_NS) {
        if (next_event(set, data)) return NVML_SUCCESS;
        if (any_lost(set)) return NVML_ERROR_GPU_IS_LOST;
        if (waited >= (uint64_t)timeoutms * 1000000) return NVML_ERROR_TIMEOUT;
        nanosleep(&pause, NULL);
    }
}
