/* What NVML says of a device. */
#define _GNU_SOURCE
#include "handles.h"

#include <stdio.h>
#include <string.h>

#define CPUS_PER_NUMA_NODE 16

EXPORT(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned length) {
    Card card;
    NVML_ENTER(device, &card);
    return nvml_text(uuid, length, card.uuid);
}

EXPORT(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned length) {
    Card card;
    NVML_ENTER(device, &card);
    return nvml_text(name, length, card.model);
}

/* Most of what follows answers one number about one card. */
#define ANSWER(name, type, expression)                \
    EXPORT(name, nvmlDevice_t device, type *answer) { \
        Card card;                                    \
        NVML_ENTER(device, &card);                    \
        if (answer == NULL) {                         \
            return NVML_ERROR_INVALID_ARGUMENT;       \
        }                                             \
        *answer = (expression);                       \
        return NVML_SUCCESS;                          \
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
    return (nvmlUtilization_t){.gpu = ledger_is_busy(card->uuid) ? 100 : 0};
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
ANSWER(nvmlDeviceGetAccountingBufferSize, unsigned, SIM_PROCESSES)
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

static void answer_field(const Card *card, nvmlFieldValue_t *field) {
    field->nvmlReturn = field->fieldId == NVML_FI_RECOVERY_ACTION ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    field->valueType = NVML_VALUE_UNSIGNED_INT;
    field->value = card->recovery;
}

EXPORT(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    Card card;
    NVML_ENTER(device, &card);
    if (count < 1 || values == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (int i = 0; i < count; i++) {
        answer_field(&card, &values[i]);
    }
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
