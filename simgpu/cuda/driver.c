/* Initialisation, the lock, and which cards become devices. */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static Device devices[SIM_MAX_CARDS];
static CUdevice devices_found;

CUresult driver_enter(const char *function) {
    int injected = sim_fault(function);
    if (injected != 0) {
        return (CUresult)injected;
    }
    if (ledger_forked()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    (void)pthread_mutex_lock(&driver_lock);
    return initialised ? CUDA_SUCCESS : driver_leave(CUDA_ERROR_NOT_INITIALIZED);
}

CUresult driver_leave(CUresult result) {
    (void)pthread_mutex_unlock(&driver_lock);
    return result;
}

void sleep_until(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)pthread_mutex_unlock(&driver_lock);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    (void)pthread_mutex_lock(&driver_lock);
}

static int find_listed(const Cards *cards, const char *token) {
    char *end;
    long index = strtol(token, &end, 10);
    if (end != token) {
        return index >= 0 && index < (long)cards->count ? (int)index : -1;
    }
    for (unsigned i = 0; i < cards->count; i++) {
        if (sim_uuid_matches(cards->card[i].uuid, token)) {
            return (int)i;
        }
    }
    return -1;
}

/* False when it is there already. */
static bool add_device(const Card *card) {
    for (CUdevice i = 0; i < devices_found; i++) {
        if (strcmp(devices[i].uuid, card->uuid) == 0) {
            return false;
        }
    }
    memcpy(devices[devices_found++].uuid, card->uuid, SIM_UUID_SIZE);
    return true;
}

/* CUDA_VISIBLE_DEVICES as the real driver reads it: in the order given, up to the first name it does not know; a card
 * named twice is an error. */
static CUresult add_listed(const Cards *cards, const char *list) {
    char *copy = strdup(list);
    char *rest = copy;
    char *token;
    int found = 0;
    bool repeated = false;
    while (found >= 0 && !repeated && (token = strsep(&rest, ",")) != NULL) {
        found = find_listed(cards, token);
        repeated = found >= 0 && !add_device(&cards->card[found]);
    }
    free(copy);
    return repeated ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static CUresult find_devices(void) {
    static Cards cards; /* large; under driver_lock */
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    CUresult listing = CUDA_SUCCESS;
    devices_found = 0;
    int result = sim_cards(&cards);
    if (result != 0) {
        return result == -EINVAL ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_NO_DEVICE;
    }
    for (unsigned i = 0; list == NULL && i < cards.count; i++) {
        (void)add_device(&cards.card[i]);
    }
    if (list != NULL) {
        listing = add_listed(&cards, list);
    }
    return listing == CUDA_SUCCESS && devices_found == 0 ? CUDA_ERROR_NO_DEVICE : listing;
}

static CUresult initialise(void) {
    CUresult result = initialised ? CUDA_SUCCESS : find_devices();
    if (result == CUDA_SUCCESS && ledger_join() != 0) {
        result = CUDA_ERROR_OPERATING_SYSTEM;
    }
    initialised = initialised || result == CUDA_SUCCESS;
    return result;
}

SIM_EXPORT CUresult cuInit(unsigned int Flags) {
    int injected = sim_fault(__func__);
    if (injected != 0 || Flags != 0) {
        return injected != 0 ? (CUresult)injected : CUDA_ERROR_INVALID_VALUE;
    }
    if (ledger_forked()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    (void)pthread_mutex_lock(&driver_lock);
    return driver_leave(initialise());
}

SIM_EXPORT CUresult cuDriverGetVersion(int *driverVersion) {
    int injected = sim_fault(__func__);
    if (injected != 0 || driverVersion == NULL) {
        return injected != 0 ? (CUresult)injected : CUDA_ERROR_INVALID_VALUE;
    }
    *driverVersion = SIM_CUDA_VERSION;
    return CUDA_SUCCESS;
}

Device *device_at(CUdevice ordinal) { return ordinal >= 0 && ordinal < devices_found ? &devices[ordinal] : NULL; }

CUdevice device_count(void) { return devices_found; }

bool device_card(CUdevice ordinal, Card *out) {
    const Device *device = device_at(ordinal);
    return device != NULL && sim_card(device->uuid, out) && out->healthy;
}

CUresult device_charge(CUdevice ordinal, uint64_t bytes) {
    Card card;
    if (!device_card(ordinal, &card)) {
        return CUDA_ERROR_UNKNOWN;
    }
    int result = ledger_charge(card.uuid, bytes, card.memory - card.reserved);
    if (result == 0) {
        return CUDA_SUCCESS;
    }
    return result == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
}

void device_release(CUdevice ordinal, uint64_t bytes) { ledger_release(devices[ordinal].uuid, bytes); }
