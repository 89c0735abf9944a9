/* Connections between cards: NVLink, peer-to-peer access, and the topology level of their common ancestor. */
#include <string.h>

#include "nvml/functions.h"
#include "nvml/handles.h"
#include "nvml/pci_info.h"

enum { P2P_OK = 0, P2P_NOT_SUPPORTED = 5, P2P_INDEX_NVLINK = 2 };
enum { TOPOLOGY_INTERNAL = 0, TOPOLOGY_NODE = 40, TOPOLOGY_SYSTEM = 50 };

static bool has_link(const struct card *card, const char *uuid) {
    for (unsigned i = 0; i < card->nvlink_count; i++)
        if (strcmp(card->nvlink[i], uuid) == 0) return true;
    return false;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *isActive) {
    struct card card;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (card.nvlink_count == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (link >= MAX_NVLINKS || !isActive) return NVML_ERROR_INVALID_ARGUMENT;
    *isActive = link < card.nvlink_count;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci) {
    struct card card;
    struct card peer;
    nvmlReturn_t entered = nvml_enter_card(__func__, device, &card);
    if (entered != NVML_SUCCESS) return entered;
    if (card.nvlink_count == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (!pci || link >= card.nvlink_count || !card_find(card.nvlink[link], &peer)) return NVML_ERROR_INVALID_ARGUMENT;
    *pci = pci_address(&peer);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, unsigned index,
                                           unsigned *status) {
    struct card first;
    struct card second;
    nvmlReturn_t entered = nvml_enter_card(__func__, device1, &first);
    if (entered != NVML_SUCCESS) return entered;
    entered = nvml_enter_card(__func__, device2, &second);
    if (entered != NVML_SUCCESS) return entered;
    if (!status) return NVML_ERROR_INVALID_ARGUMENT;
    *status = index != P2P_INDEX_NVLINK || has_link(&first, second.uuid) ? P2P_OK : P2P_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2, unsigned *level) {
    struct card first;
    struct card second;
    nvmlReturn_t entered = nvml_enter_card(__func__, device1, &first);
    if (entered != NVML_SUCCESS) return entered;
    entered = nvml_enter_card(__func__, device2, &second);
    if (entered != NVML_SUCCESS) return entered;
    if (!level) return NVML_ERROR_INVALID_ARGUMENT;
    *level = first.numa == second.numa ? TOPOLOGY_NODE : TOPOLOGY_SYSTEM;
    *level = device1 == device2 ? TOPOLOGY_INTERNAL : *level;
    return NVML_SUCCESS;
}
