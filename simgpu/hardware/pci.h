/* PCI addresses of cards, as text `DOMAIN:BUS:DEVICE.FUNCTION` in hexadecimal. */
#ifndef SIMGPU_HARDWARE_PCI_H
#define SIMGPU_HARDWARE_PCI_H

#include <stdbool.h>

#include "hardware/card.h"

/* The bus of a card: each card has one of its own. */
unsigned pci_bus(const struct card *card);
/* Whether the text begins with a domain and a bus. */
bool pci_is_address(const char *text);
/* Whether the text is an address on the card's bus, in whichever domain. */
bool pci_matches(const struct card *card, const char *text);

#endif
