/* The simulated libnvidia-ml: start and end, handles, and what it says of the system. */
#define _GNU_SOURCE
#include "handles.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define DRIVER_VERSION      "580.95.05"
#define CUDA_DRIVER_VERSION 13000
#define MAX_HANDLES         64

static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned references;
static struct nvmlDevice_st handles[MAX_HANDLES]; /* filled up under nvml_lock, never moved */
static unsigned handle_count;

EXPORT(nvmlInitWithFlags, unsigned flags) {
    static Cards cards; /* large; under nvml_lock */
    int injected = sim_fault("nvmlInit_v2");
    (void)flags;
    if (injected != 0) {
        return (nvmlReturn_t)injected;
    }
    (void)pthread_mutex_lock(&nvml_lock);
    int result = sim_cards(&cards);
    references += result == 0;
    (void)pthread_mutex_unlock(&nvml_lock);
    if (result == -ENOENT) {
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    return result == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORT(nvmlInit_v2, void) { return nvmlInitWithFlags(0); }

EXPORT(nvmlInit, void) { return nvmlInitWithFlags(0); }

EXPORT(nvmlShutdown, void) {
    nvmlReturn_t result = nvml_enter(__func__);
    if (result == NVML_SUCCESS) {
        (void)pthread_mutex_lock(&nvml_lock);
        references--;
        (void)pthread_mutex_unlock(&nvml_lock);
    }
    return result;
}

nvmlReturn_t nvml_enter(const char *function) {
    int injected = sim_fault(function);
    if (injected != 0) {
        return (nvmlReturn_t)injected;
    }
    return references > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

static bool is_handle(nvmlDevice_t device) {
    for (unsigned i = 0; i < handle_count; i++) {
        if (device == &handles[i]) {
            return true;
        }
    }
    return false;
}

nvmlReturn_t nvml_card(const char *function, nvmlDevice_t device, Card *card) {
    nvmlReturn_t result = nvml_enter(function);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (!is_handle(device)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return sim_card(device->uuid, card) && card->healthy ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

nvmlDevice_t nvml_handle(const char *uuid) {
    nvmlDevice_t found = NULL;
    (void)pthread_mutex_lock(&nvml_lock);
    for (unsigned i = 0; i < handle_count && found == NULL; i++) {
        found = strcmp(handles[i].uuid, uuid) == 0 ? &handles[i] : NULL;
    }
    if (found == NULL && handle_count < MAX_HANDLES) {
        found = &handles[handle_count];
        (void)snprintf(found->uuid, SIM_UUID_SIZE, "%s", uuid);
        handle_count++;
    }
    (void)pthread_mutex_unlock(&nvml_lock);
    return found;
}

/* As nvidia-smi meets it: a card that is lost gives no handle. */
static nvmlReturn_t hand_out(const Card *card, nvmlDevice_t *device) {
    if (!card->healthy) {
        return NVML_ERROR_GPU_IS_LOST;
    }
    *device = nvml_handle(card->uuid);
    return *device != NULL ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t visible_cards(const char *function, Cards *cards) {
    nvmlReturn_t result = nvml_enter(function);
    if (result != NVML_SUCCESS) {
        return result;
    }
    return sim_cards(cards) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORT(nvmlDeviceGetCount_v2, unsigned *count) {
    Cards cards;
    nvmlReturn_t result = visible_cards(__func__, &cards);
    if (result != NVML_SUCCESS || count == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = cards.count;
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t *device) {
    Cards cards;
    nvmlReturn_t result = visible_cards(__func__, &cards);
    if (result != NVML_SUCCESS) {
        return result;
    }
    return device != NULL && index < cards.count ? hand_out(&cards.card[index], device) : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t hand_out_matching(const char *function, nvmlDevice_t *device, const char *text,
                                      bool (*matches)(const Card *, const char *)) {
    Cards cards;
    nvmlReturn_t result = visible_cards(function, &cards);
    if (result != NVML_SUCCESS || device == NULL || text == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned i = 0; i < cards.count; i++) {
        if (matches(&cards.card[i], text)) {
            return hand_out(&cards.card[i], device);
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const Card *card, const char *uuid) { return strcmp(card->uuid, uuid) == 0; }

static bool has_bus_id(const Card *card, const char *bus_id) {
    unsigned domain;
    unsigned bus;
    return sscanf(bus_id, "%x:%x:", &domain, &bus) == 2 && bus == card->minor + 1;
}

EXPORT(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device) {
    return hand_out_matching(__func__, device, uuid, has_uuid);
}

EXPORT(nvmlDeviceGetHandleByPciBusId_v2, const char *pciBusId, nvmlDevice_t *device) {
    return hand_out_matching(__func__, device, pciBusId, has_bus_id);
}

nvmlReturn_t nvml_text(char *out, unsigned length, const char *text) {
    if (out == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (strlen(text) >= length) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    (void)snprintf(out, length, "%s", text);
    return NVML_SUCCESS;
}

EXPORT(nvmlSystemGetDriverVersion, char *version, unsigned length) {
    nvmlReturn_t result = nvml_enter(__func__);
    return result != NVML_SUCCESS ? result : nvml_text(version, length, DRIVER_VERSION);
}

EXPORT(nvmlSystemGetNVMLVersion, char *version, unsigned length) {
    return nvml_text(version, length, "13." DRIVER_VERSION);
}

EXPORT(nvmlSystemGetCudaDriverVersion, int *version) {
    if (version == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *version = CUDA_DRIVER_VERSION;
    return NVML_SUCCESS;
}

EXPORT(nvmlSystemGetCudaDriverVersion_v2, int *version) { return nvmlSystemGetCudaDriverVersion(version); }
