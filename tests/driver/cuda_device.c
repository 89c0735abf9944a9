/* Initialisation, versions, errors and devices. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
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

uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}

Device *device_at(CUdevice ordinal) {
    return ordinal >= 0 && ordinal < devices_found ? &devices[ordinal] : NULL;
}

CUdevice device_count(void) {
    return devices_found;
}

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

void device_release(CUdevice ordinal, uint64_t bytes) {
    ledger_release(devices[ordinal].uuid, bytes);
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count) {
    ENTER();
    REQUIRE(count != NULL, CUDA_ERROR_INVALID_VALUE);
    *count = devices_found;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER();
    REQUIRE(device != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(ordinal) != NULL, CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    LEAVE(CUDA_SUCCESS);
}

/* A lost card still has its name: what was read once is known. */
static bool described(CUdevice dev, Card *card) {
    return device_at(dev) != NULL && sim_card(devices[dev].uuid, card);
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
    Card card;
    ENTER();
    REQUIRE(name != NULL && len > 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(described(dev, &card), CUDA_ERROR_INVALID_DEVICE);
    (void)snprintf(name, (size_t)len, "%s", card.model);
    LEAVE(CUDA_SUCCESS);
}

static CUresult get_uuid(CUuuid *uuid, CUdevice dev) {
    Card card;
    REQUIRE(uuid != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(described(dev, &card), CUDA_ERROR_INVALID_DEVICE);
    memcpy(uuid->bytes, card.uuid_bytes, sizeof uuid->bytes);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
    ENTER();
    return get_uuid(uuid, dev);
}

SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
    ENTER();
    return get_uuid(uuid, dev);
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
    Card card;
    ENTER();
    REQUIRE(bytes != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(described(dev, &card), CUDA_ERROR_INVALID_DEVICE);
    *bytes = card.memory - card.reserved;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
    Card card;
    ENTER();
    REQUIRE(bytes != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(described(dev, &card), CUDA_ERROR_INVALID_DEVICE);
    uint64_t total = card.memory - card.reserved;
    *bytes = total < UINT32_MAX ? (unsigned)total : UINT32_MAX;
    LEAVE(CUDA_SUCCESS);
}

/* What programs ask most; an H100's numbers. Anything else reads 0. */
static int attribute_of(CUdevice_attribute attrib, const Card *card) {
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } fixed[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    };
    if (attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
        return (int)(card->minor + 1);
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fixed[i].attribute == attrib) {
            return fixed[i].value;
        }
    }
    return 0;
}

SIM_EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
    Card card;
    ENTER();
    REQUIRE(pi != NULL && attrib > 0 && attrib < CU_DEVICE_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(described(dev, &card), CUDA_ERROR_INVALID_DEVICE);
    *pi = attribute_of(attrib, &card);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
    ENTER();
    REQUIRE(major != NULL && minor != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    *major = 9;
    *minor = 0;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
    Card card;
    ENTER();
    REQUIRE(pciBusId != NULL && len > 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(described(dev, &card), CUDA_ERROR_INVALID_DEVICE);
    (void)snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", card.minor + 1);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
    unsigned domain;
    unsigned bus;
    Card card;
    ENTER();
    REQUIRE(dev != NULL && pciBusId != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(sscanf(pciBusId, "%x:%x:", &domain, &bus) == 2, CUDA_ERROR_INVALID_VALUE);
    for (CUdevice i = 0; i < devices_found; i++) {
        if (described(i, &card) && card.minor + 1 == bus) {
            *dev = i;
            LEAVE(CUDA_SUCCESS);
        }
    }
    LEAVE(CUDA_ERROR_INVALID_DEVICE);
}

SIM_EXPORT CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
    ENTER();
    REQUIRE(canAccessPeer != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL && device_at(peerDev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    *canAccessPeer = dev != peerDev;
    LEAVE(CUDA_SUCCESS);
}

static const struct {
    CUresult error;
    const char *name;
    const char *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_index(CUresult error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].error == error) {
            return (int)i;
        }
    }
    return -1;
}

SIM_EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr) {
    int index = error_index(error);
    if (pStr == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pStr = index < 0 ? NULL : errors[index].name;
    return index < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr) {
    int index = error_index(error);
    if (pStr == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pStr = index < 0 ? NULL : errors[index].text;
    return index < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
