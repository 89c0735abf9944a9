/* PCI addresses in the form of NVML. */
#ifndef NVML_PCI_INFO_H
#define NVML_PCI_INFO_H

#include "hardware/card.h"
#include "types.h"

/* The fields of the card's address; all others are 0. */
nvmlPciInfo_t pci_address(const Card *card);

#endif
