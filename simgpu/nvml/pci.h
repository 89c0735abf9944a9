/* PCI addresses of cards: the bus is the card's minor number + 1. */
#ifndef NVML_PCI_H
#define NVML_PCI_H

#include "hardware/cards.h"
#include "types.h"

#include <stdbool.h>

/* The fields of the address; all others are 0. */
nvmlPciInfo_t pci_address(const Card *card);
bool pci_matches(const Card *card, const char *bus_id);

#endif
