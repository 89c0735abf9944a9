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
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return nvml_copy_text(uuid, length, card.uuid);
}

EXPORTED nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    Card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return nvml_copy_text(name, length, card.model);
}

/* Begins a function that writes one value of one card. */
static nvmlReturn_t enter_for(const void *answer, const char *function, nvmlDevice_t device, Card *card) {
    nvmlReturn_t entered = nvml_enter_card(function, device, card);
    return entered == NVML_SUCCESS && answer == NULL ? NVML_ERROR_INVALID_ARGUMENT : entered;
}

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

EXPORTED nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = index_of(&card);
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = card.minor;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, int *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = (int)card.numa;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 0;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 1;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 14;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 0;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 70000;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = MAX_PROCESSES;
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = pci_of(&card);
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *answer) {
    Card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = utilization_of(&card);
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    Card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (memory == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    nvmlMemory_v2_t full = memory_of(&card);
    *memory = (nvmlMemory_t){.total = full.total, .free = full.free, .used = full.used + full.reserved};
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    Card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
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
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (sensor != 0 || temperature == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *temperature = 30;
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    Card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
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
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
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
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
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
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return set_bits(nodeSet, nodeSetSize, card.numa, 1);
}

EXPORTED nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned cpuSetSize, unsigned long *cpuSet) {
    Card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return set_bits(cpuSet, cpuSetSize, card.numa * CPUS_PER_NUMA_NODE, CPUS_PER_NUMA_NODE);
}
