/* Properties of one device. */
#include <string.h>

#include "ledger/accounts.h"
#include "ledger/card_time.h"
#include "nvml/functions.h"
#include "nvml/handles.h"
#include "nvml/pci_info.h"
#include "nvml/text.h"

#define CPUS_PER_NUMA_NODE 16
#define PCI_DEVICE_ID      0x233010DE /* of an H100 */
#define PCI_SUBSYSTEM_ID   0x16C110DE

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return nvml_copy_text(uuid, length, card.uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return nvml_copy_text(name, length, card.model);
}

/* Begins a function that writes one value of one card. */
static nvmlReturn_t enter_for(const void *answer, const char *function, nvmlDevice_t device, struct card *card) {
    nvmlReturn_t entered = nvml_enter_card(function, device, card);
    return entered == NVML_SUCCESS && !answer ? NVML_ERROR_INVALID_ARGUMENT : entered;
}

/* The card's index among the visible cards. */
static unsigned index_of(const struct card *card) {
    struct cards cards;
    if (cards_visible(&cards) != 0) return 0;
    unsigned index = 0;
    while (index < cards.count && strcmp(cards.card[index].uuid, card->uuid) != 0) index++;
    return index;
}

static nvmlMemory_v2_t memory_of(const struct card *card) {
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

static nvmlUtilization_t utilization_of(const struct card *card) {
    return (nvmlUtilization_t){.gpu = card_is_busy(card->uuid) ? 100 : 0};
}

static nvmlPciInfo_t pci_of(const struct card *card) {
    nvmlPciInfo_t pci = pci_address(card);
    pci.pciDeviceId = PCI_DEVICE_ID;
    pci.pciSubSystemId = PCI_SUBSYSTEM_ID;
    return pci;
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = index_of(&card);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = card.minor;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, int *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = (int)card.numa;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = card.compute_mode;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 1;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 14;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 0;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = 70000;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = MAX_PROCESSES;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = pci_of(&card);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *answer) {
    struct card card;
    nvmlReturn_t result = enter_for(answer, __func__, device, &card);
    if (result == NVML_SUCCESS) *answer = utilization_of(&card);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlMemory_v2_t full = memory_of(&card);
    *memory = (nvmlMemory_t){.total = full.total, .free = full.free, .used = full.used + full.reserved};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_MEMORY_V2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *memory = memory_of(&card);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *temperature) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (sensor != 0 || !temperature) return NVML_ERROR_INVALID_ARGUMENT;
    *temperature = 30;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!major || !minor) return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)(card.capability / 10);
    *minor = (int)(card.capability % 10);
    return NVML_SUCCESS;
}

static void answer_field(const struct card *card, nvmlFieldValue_t *field) {
    field->nvmlReturn = field->fieldId == NVML_FI_RECOVERY_ACTION ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    field->valueType = NVML_VALUE_UNSIGNED_INT;
    field->value = card->recovery;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (count < 1 || !values) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) answer_field(&card, &values[i]);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!current || !pending) return NVML_ERROR_INVALID_ARGUMENT;
    *current = card.is_mig;
    *pending = card.is_mig;
    return NVML_SUCCESS;
}

/* A card in MIG mode is shown without instances. */
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t set_bits(unsigned long *words, unsigned count, unsigned first, unsigned bits) {
    const unsigned width = 8 * sizeof *words;
    if (!words || count == 0) return NVML_ERROR_INVALID_ARGUMENT;
    if (first + bits > count * width) return NVML_ERROR_INSUFFICIENT_SIZE;
    memset(words, 0, count * sizeof *words);
    for (unsigned bit = first; bit < first + bits; bit++) words[bit / width] |= 1UL << bit % width;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned nodeSetSize, unsigned long *nodeSet,
                                                unsigned scope) {
    struct card card;
    (void)scope;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return set_bits(nodeSet, nodeSetSize, card.numa, 1);
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned cpuSetSize, unsigned long *cpuSet) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    return set_bits(cpuSet, cpuSetSize, card.numa * CPUS_PER_NUMA_NODE, CPUS_PER_NUMA_NODE);
}
