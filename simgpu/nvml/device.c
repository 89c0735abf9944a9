/* Properties of one device. */
#include "ledger/accounts.h"
#include "ledger/card_time.h"
#include "nvml/functions.h"
#include "nvml/handles.h"
#include "nvml/pci_info.h"
#include "nvml/text.h"

#include <string.h>

#define CPUS_PER_NUMA_NODE 16
#define PCI_DEVICE_ID      0x233010DE /* of an H100 */
#define PCI_SUBSYSTEM_ID   0x16C110DE

EXPORTED nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    Card card;
    NVML_ENTER(device, &card);
    return nvml_copy_text(uuid, length, card.uuid);
}

EXPORTED nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    Card card;
    NVML_ENTER(device, &card);
    return nvml_copy_text(name, length, card.model);
}

/* Defines a function that writes one value of one card.
 * NOLINTBEGIN(bugprone-macro-parentheses): `type` is a type */
#define ONE_VALUE(name, type, expression)                           \
    EXPORTED nvmlReturn_t name(nvmlDevice_t device, type *answer) { \
        Card card;                                                  \
        NVML_ENTER(device, &card);                                  \
        if (answer == NULL) {                                       \
            return NVML_ERROR_INVALID_ARGUMENT;                     \
        }                                                           \
        *answer = (expression);                                     \
        return NVML_SUCCESS;                                        \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

/* The card's index among the visible cards. */
static unsigned index_of(const Card *card) {
    Cards cards;
    if (cards_visible(&cards) != 0) {
        return 0;
    }
    unsigned index = 0;
    while (index < cards.count && strcmp(cards.card[index].uuid, card->uuid) != 0) {
        index++;
    }
    return index;
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

static nvmlUtilization_t utilization_of(const Card *card) {
    return (nvmlUtilization_t){.gpu = card_is_busy(card->uuid) ? 100 : 0};
}

static nvmlPciInfo_t pci_of(const Card *card) {
    nvmlPciInfo_t pci = pci_address(card);
    pci.pciDeviceId = PCI_DEVICE_ID;
    pci.pciSubSystemId = PCI_SUBSYSTEM_ID;
    return pci;
}

ONE_VALUE(nvmlDeviceGetIndex, unsigned, index_of(&card))
ONE_VALUE(nvmlDeviceGetMinorNumber, unsigned, card.minor)
ONE_VALUE(nvmlDeviceGetNumaNodeId, int, (int)card.numa)
ONE_VALUE(nvmlDeviceGetComputeMode, unsigned, 0)
ONE_VALUE(nvmlDeviceGetPersistenceMode, unsigned, 1)
ONE_VALUE(nvmlDeviceGetBrand, unsigned, 14)
ONE_VALUE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, 0)
ONE_VALUE(nvmlDeviceGetPowerUsage, unsigned, 70000)
ONE_VALUE(nvmlDeviceGetAccountingBufferSize, unsigned, MAX_PROCESSES)
ONE_VALUE(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t, pci_of(&card))
ONE_VALUE(nvmlDeviceGetUtilizationRates, nvmlUtilization_t, utilization_of(&card))

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    Card card;
    NVML_ENTER(device, &card);
    if (memory == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    nvmlMemory_v2_t full = memory_of(&card);
    *memory = (nvmlMemory_t){.total = full.total, .free = full.free, .used = full.used + full.reserved};
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
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

EXPORTED nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *temperature) {
    Card card;
    NVML_ENTER(device, &card);
    if (sensor != 0 || temperature == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *temperature = 30;
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
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

EXPORTED nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
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

EXPORTED nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
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

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned nodeSetSize, unsigned long *nodeSet,
                                                  unsigned scope) {
    Card card;
    (void)scope;
    NVML_ENTER(device, &card);
    return set_bits(nodeSet, nodeSetSize, card.numa, 1);
}

EXPORTED nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned cpuSetSize, unsigned long *cpuSet) {
    Card card;
    NVML_ENTER(device, &card);
    return set_bits(cpuSet, cpuSetSize, card.numa * CPUS_PER_NUMA_NODE, CPUS_PER_NUMA_NODE);
}
