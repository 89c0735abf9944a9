#include "nvml/handles.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "hardware/mutex.h"
#include "hardware/pci.h"
#include "hardware/state_directory.h"
#include "ledger/faults.h"
#include "nvml/functions.h"
#include "nvml/lists.h"

#define MAX_HANDLES 64

static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned references;
static struct nvmlDevice_st handles[MAX_HANDLES]; /* added under nvml_lock, never moved or removed */
static unsigned handle_count;
static long long initialized_load; /* the load of the driver that nvmlInit saw */

/* Tells loads of the driver apart: a test that reloads the driver touches the file `reloaded`. */
static long long driver_load(void) {
    char path[STATE_PATH_SIZE];
    struct stat found;
    state_directory_path(path, "reloaded");
    return stat(path, &found) == 0 ? (long long)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec : 0;
}

/* Returns what cards_visible does. */
static int initialize(void) {
    static struct cards cards; /* static because it is large; under nvml_lock */
    HOLD_MUTEX(nvml_lock);
    int result = cards_visible(&cards);
    references += result == 0;
    initialized_load = driver_load();
    return result;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    int injected = fault_injected("nvmlInit_v2");
    (void)flags;
    if (injected != 0) return (nvmlReturn_t)injected;
    int result = initialize();
    if (result == -ENOENT) return NVML_ERROR_DRIVER_NOT_LOADED;
    return result == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

EXPORT nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT nvmlReturn_t nvmlShutdown(void) {
    nvmlReturn_t result = nvml_enter(__func__);
    if (result == NVML_SUCCESS) {
        HOLD_MUTEX(nvml_lock);
        references--;
    }
    return result;
}

nvmlReturn_t nvml_enter(const char *function) {
    int injected = fault_injected(function);
    if (injected != 0) return (nvmlReturn_t)injected;
    return references > 0 && driver_load() == initialized_load ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

static bool is_handle(nvmlDevice_t device) {
    for (unsigned i = 0; i < handle_count; i++)
        if (device == &handles[i]) return true;
    return false;
}

nvmlReturn_t nvml_enter_card(const char *function, nvmlDevice_t device, struct card *card) {
    nvmlReturn_t result = nvml_enter(function);
    if (result != NVML_SUCCESS) return result;
    if (!is_handle(device)) return NVML_ERROR_INVALID_ARGUMENT;
    int injected = fault_awaited(function, device->uuid);
    if (injected != 0) return (nvmlReturn_t)injected;
    return card_find(device->uuid, card) && card->is_healthy ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

/* The handle of a card, added when it is new; NULL when there is no room. */
static nvmlDevice_t handle_of(const char *uuid) {
    nvmlDevice_t found = NULL;
    HOLD_MUTEX(nvml_lock);
    for (unsigned i = 0; i < handle_count && !found; i++)
        found = strcmp(handles[i].uuid, uuid) == 0 ? &handles[i] : NULL;
    if (!found && handle_count < MAX_HANDLES) {
        found = &handles[handle_count];
        (void)snprintf(found->uuid, UUID_SIZE, "%s", uuid);
        handle_count++;
    }
    return found;
}

/* A card that is lost gets no handle, as nvidia-smi sees on a real one. */
static nvmlReturn_t get_handle(const char *function, const struct card *card, nvmlDevice_t *device) {
    int injected = fault_awaited(function, card->uuid);
    if (injected != 0) return (nvmlReturn_t)injected;
    if (!card->is_healthy) return NVML_ERROR_GPU_IS_LOST;
    *device = handle_of(card->uuid);
    return *device ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t visible_cards(const char *function, struct cards *cards) {
    nvmlReturn_t result = nvml_enter(function);
    if (result != NVML_SUCCESS) return result;
    return cards_visible(cards) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    struct cards cards;
    nvmlReturn_t result = visible_cards(__func__, &cards);
    if (result != NVML_SUCCESS || !count) return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    *count = cards.count;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    struct cards cards;
    nvmlReturn_t result = visible_cards(__func__, &cards);
    if (result != NVML_SUCCESS) return result;
    return device && index < cards.count ? get_handle(__func__, &cards.card[index], device)
                                         : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t get_handle_matching(const char *function, nvmlDevice_t *device, const char *text,
                                        bool (*matches)(const struct card *, const char *)) {
    FREED_AT_END struct cards *cards = nvml_list(1, sizeof *cards);
    if (!cards) return NVML_ERROR_MEMORY;
    nvmlReturn_t result = visible_cards(function, cards);
    if (result != NVML_SUCCESS || !device || !text)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < cards->count; i++)
        if (matches(&cards->card[i], text)) return get_handle(function, &cards->card[i], device);
    return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const struct card *card, const char *uuid) { return strcmp(card->uuid, uuid) == 0; }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    return get_handle_matching(__func__, device, uuid, has_uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device) {
    return get_handle_matching(__func__, device, pciBusId, pci_matches);
}
