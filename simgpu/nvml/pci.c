#include "pci.h"

#include <stdio.h>

nvmlPciInfo_t pci_address(const Card *card) {
    nvmlPciInfo_t pci = {.bus = card->minor + 1};
    (void)snprintf(pci.busIdLegacy, sizeof pci.busIdLegacy, "0000:%02X:00.0", pci.bus);
    (void)snprintf(pci.busId, sizeof pci.busId, "00000000:%02X:00.0", pci.bus);
    return pci;
}

bool pci_matches(const Card *card, const char *bus_id) {
    unsigned domain;
    unsigned bus;
    return sscanf(bus_id, "%x:%x:", &domain, &bus) == 2 && bus == card->minor + 1;
}
