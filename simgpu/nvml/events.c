/* Events: lines `xid UUID CODE` appended to the file `events` after a set was made reach whoever waits on that set. */
#define _GNU_SOURCE
#include "handles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define POLL_NS 10000000

struct nvmlEventSet_st {
    long offset; /* of the first line not yet delivered */
    unsigned count;
    nvmlDevice_t device[SIM_MAX_CARDS];
};

static void events_path(char out[SIM_PATH_SIZE]) { sim_path(out, "events"); }

static long events_size(void) {
    char path[SIM_PATH_SIZE];
    struct stat found;
    events_path(path);
    return stat(path, &found) == 0 ? (long)found.st_size : 0;
}

EXPORT(nvmlEventSetCreate, nvmlEventSet_t *set) {
    nvmlReturn_t result = nvml_enter(__func__);
    if (result != NVML_SUCCESS || set == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    *set = calloc(1, sizeof **set);
    if (*set == NULL) {
        return NVML_ERROR_MEMORY;
    }
    (*set)->offset = events_size();
    return NVML_SUCCESS;
}

EXPORT(nvmlEventSetFree, nvmlEventSet_t set) {
    free(set);
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t device, unsigned long long *types) {
    Card card;
    NVML_ENTER(device, &card);
    if (types == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *types = NVML_EVENT_XID;
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    Card card;
    NVML_ENTER(device, &card);
    if (set == NULL || set->count == SIM_MAX_CARDS) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if ((types & ~(unsigned long long)NVML_EVENT_XID) != 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    set->device[set->count++] = device;
    return NVML_SUCCESS;
}

static nvmlDevice_t registered(const struct nvmlEventSet_st *set, const char *uuid) {
    for (unsigned i = 0; i < set->count; i++) {
        if (strcmp(set->device[i]->uuid, uuid) == 0) {
            return set->device[i];
        }
    }
    return NULL;
}

static bool parse_event(const struct nvmlEventSet_st *set, const char *line, nvmlEventData_t *data) {
    char uuid[SIM_UUID_SIZE];
    unsigned long long code;
    if (sscanf(line, "xid %47s %llu", uuid, &code) != 2) {
        return false;
    }
    *data = (nvmlEventData_t){registered(set, uuid), NVML_EVENT_XID, code, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
    return data->device != NULL;
}

/* The next line that concerns this set; a line without its end is still being written. */
static bool next_event(nvmlEventSet_t set, nvmlEventData_t *data) {
    char path[SIM_PATH_SIZE];
    char line[256];
    bool found = false;
    events_path(path);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    (void)fseek(file, set->offset, SEEK_SET);
    while (!found && fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL) {
        set->offset = ftell(file);
        found = parse_event(set, line, data);
    }
    (void)fclose(file);
    return found;
}

static bool any_lost(const struct nvmlEventSet_st *set) {
    Card card;
    for (unsigned i = 0; i < set->count; i++) {
        if (!sim_card(set->device[i]->uuid, &card) || !card.healthy) {
            return true;
        }
    }
    return false;
}

EXPORT(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms) {
    const struct timespec pause = {.tv_nsec = POLL_NS};
    nvmlReturn_t result = nvml_enter(__func__);
    if (result != NVML_SUCCESS || set == NULL || data == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    for (uint64_t waited = 0;; waited += POLL_NS) {
        if (next_event(set, data)) {
            return NVML_SUCCESS;
        }
        if (any_lost(set)) {
            return NVML_ERROR_GPU_IS_LOST;
        }
        if (waited >= (uint64_t)timeoutms * 1000000) {
            return NVML_ERROR_TIMEOUT;
        }
        (void)nanosleep(&pause, NULL);
    }
}

static const struct {
    nvmlReturn_t error;
    const char *text;
} errors[] = {
    {NVML_SUCCESS, "Success"},
    {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {NVML_ERROR_NOT_FOUND, "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {NVML_ERROR_TIMEOUT, "Timeout"},
    {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {NVML_ERROR_MEMORY, "Insufficient Memory"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument Version Mismatch"},
};

SIM_EXPORT const char *nvmlErrorString(nvmlReturn_t result);
SIM_EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].error == result) {
            return errors[i].text;
        }
    }
    return "Unknown Error";
}
