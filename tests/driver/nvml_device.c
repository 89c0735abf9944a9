/* The simulated libnvidia-ml: start, handles, and what one reads of a device. */
#define _GNU_SOURCE
#include "nvml_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DRIVER_VERSION "580.95.05"
#define CUDA_DRIVER_VERSION 13000
#define MAX_HANDLES 64
#define CPUS_PER_NUMA_NODE 16

static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned references;
static struct nvmlDevice_st handles[MAX_HANDLES]; /* filled up under nvml_lock, never moved */
static unsigned handle_count;

#define EXPORT(name, ...)                       \
    SIM_EXPORT nvmlReturn_t name(__VA_ARGS__);  \
    SIM_EXPORT nvmlReturn_t name(__VA_ARGS__)

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

EXPORT(nvmlInit_v2, void) {
    return nvmlInitWithFlags(0);
}

EXPORT(nvmlInit, void) {
    return nvmlInitWithFlags(0);
}

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

static bool has_uuid(const Card *card, const char *uuid) {
    return strcmp(card->uuid, uuid) == 0;
}

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

static nvmlReturn_t copy_text(char *out, unsigned length, const char *text) {
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
    return result != NVML_SUCCESS ? result : copy_text(version, length, DRIVER_VERSION);
}

EXPORT(nvmlSystemGetNVMLVersion, char *version, unsigned length) {
    return copy_text(version, length, "13." DRIVER_VERSION);
}

EXPORT(nvmlSystemGetCudaDriverVersion, int *version) {
    if (version == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *version = CUDA_DRIVER_VERSION;
    return NVML_SUCCESS;
}

EXPORT(nvmlSystemGetCudaDriverVersion_v2, int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}

EXPORT(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned length) {
    Card card;
    NVML_ENTER(device, &card);
    return copy_text(uuid, length, card.uuid);
}

EXPORT(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned length) {
    Card card;
    NVML_ENTER(device, &card);
    return copy_text(name, length, card.model);
}

/* Most of what follows answers one number about one card. */
#define ANSWER(name, type, expression)               \
    EXPORT(name, nvmlDevice_t device, type *answer) { \
        Card card;                                   \
        NVML_ENTER(device, &card);                   \
        if (answer == NULL) {                        \
            return NVML_ERROR_INVALID_ARGUMENT;      \
        }                                            \
        *answer = (expression);                      \
        return NVML_SUCCESS;                         \
    }

static unsigned place_of(const Card *card) {
    Cards cards;
    if (sim_cards(&cards) != 0) {
        return 0;
    }
    unsigned place = 0;
    while (place < cards.count && strcmp(cards.card[place].uuid, card->uuid) != 0) {
        place++;
    }
    return place;
}

static nvmlMemory_v2_t memory_of(const Card *card) {
    uint64_t usable = card->memory - card->reserved;
    uint64_t used = ledger_used(card->uuid);
    used = used < usable ? used : usable;
    return (nvmlMemory_v2_t){
        .version = NVML_MEMORY_V2,
        .total = card->memory,
        .reserved = card->reserved,
        .free = usable - used,
        .used = used,
    };
}

static nvmlUtilization_t utilisation_of(const Card *card) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    bool busy = ledger_is_busy(card->uuid, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    return (nvmlUtilization_t){.gpu = busy ? 100 : 0};
}

static nvmlPciInfo_t pci_of(const Card *card) {
    nvmlPciInfo_t info = {.bus = card->minor + 1, .pciDeviceId = 0x233010DE, .pciSubSystemId = 0x16C110DE};
    (void)snprintf(info.busIdLegacy, sizeof info.busIdLegacy, "0000:%02X:00.0", info.bus);
    (void)snprintf(info.busId, sizeof info.busId, "00000000:%02X:00.0", info.bus);
    return info;
}

ANSWER(nvmlDeviceGetIndex, unsigned, place_of(&card))
ANSWER(nvmlDeviceGetMinorNumber, unsigned, card.minor)
ANSWER(nvmlDeviceGetNumaNodeId, int, (int)card.numa)
ANSWER(nvmlDeviceGetComputeMode, unsigned, 0)
ANSWER(nvmlDeviceGetPersistenceMode, unsigned, 1)
ANSWER(nvmlDeviceGetBrand, unsigned, 14)
ANSWER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, 0)
ANSWER(nvmlDeviceGetPowerUsage, unsigned, 70000)
ANSWER(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t, pci_of(&card))
ANSWER(nvmlDeviceGetUtilizationRates, nvmlUtilization_t, utilisation_of(&card))

EXPORT(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory) {
    Card card;
    NVML_ENTER(device, &card);
    if (memory == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    nvmlMemory_v2_t full = memory_of(&card);
    *memory = (nvmlMemory_t){.total = full.total, .free = full.free, .used = full.used + full.reserved};
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    Card card;
    NVML_ENTER(device, &card);
    if (memory == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (memory->version != NVML_MEMORY_V2) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    *memory = memory_of(&card);
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetTemperature, nvmlDevice_t device, unsigned sensor, unsigned *temperature) {
    Card card;
    NVML_ENTER(device, &card);
    if (sensor != 0 || temperature == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *temperature = 30;
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor) {
    Card card;
    NVML_ENTER(device, &card);
    if (major == NULL || minor == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned *current, unsigned *pending) {
    Card card;
    NVML_ENTER(device, &card);
    if (current == NULL || pending == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *current = card.mig;
    *pending = card.mig;
    return NVML_SUCCESS;
}

static nvmlReturn_t set_bits(unsigned long *words, unsigned count, unsigned first, unsigned bits) {
    const unsigned width = 8 * sizeof *words;
    if (words == NULL || count == 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (first + bits > count * width) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    memset(words, 0, count * sizeof *words);
    for (unsigned bit = first; bit < first + bits; bit++) {
        words[bit / width] |= 1UL << bit % width;
    }
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetMemoryAffinity, nvmlDevice_t device, unsigned nodeSetSize, unsigned long *nodeSet, unsigned scope) {
    Card card;
    (void)scope;
    NVML_ENTER(device, &card);
    return set_bits(nodeSet, nodeSetSize, card.numa, 1);
}

EXPORT(nvmlDeviceGetCpuAffinity, nvmlDevice_t device, unsigned cpuSetSize, unsigned long *cpuSet) {
    Card card;
    NVML_ENTER(device, &card);
    return set_bits(cpuSet, cpuSetSize, card.numa * CPUS_PER_NUMA_NODE, CPUS_PER_NUMA_NODE);
}

static nvmlReturn_t list_processes(nvmlDevice_t device, const char *function, unsigned *count, nvmlProcessInfo_t *infos) {
    Card card;
    SimProcess found[512];
    nvmlReturn_t result = nvml_card(function, device, &card);
    if (result != NVML_SUCCESS || count == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    unsigned given = *count;
    unsigned known = ledger_processes(card.uuid, found, sizeof found / sizeof *found);
    known = known < sizeof found / sizeof *found ? known : sizeof found / sizeof *found;
    *count = known;
    if (known > given || (known > 0 && infos == NULL)) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < known; i++) {
        infos[i] = (nvmlProcessInfo_t){found[i].pid, found[i].bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
    }
    return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) {
    return list_processes(device, __func__, count, infos);
}

EXPORT(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) {
    return list_processes(device, __func__, count, infos);
}

EXPORT(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) {
    Card card;
    (void)infos;
    NVML_ENTER(device, &card);
    if (count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = 0;
    return NVML_SUCCESS;
}
