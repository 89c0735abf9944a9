#include "nvml/pci_info.h"

#include <stdio.h>

#include "hardware/pci.h"

nvmlPciInfo_t pci_address(const struct card *card) {
    nvmlPciInfo_t pci = {.bus = pci_bus(card)};
    (void)snprintf(pci.busIdLegacy, sizeof pci.busIdLegacy, "0000:%02X:00.0", pci.bus);
    (void)snprintf(pci.busId, sizeof pci.busId, "00000000:%02X:00.0", pci.bus);
    return pci;
}
