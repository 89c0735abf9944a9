/* PCI addresses in the form of NVML. */
#ifndef SIMGPU_NVML_PCI_INFO_H
#define SIMGPU_NVML_PCI_INFO_H

#include "hardware/card.h"
#include "nvml/types.h"

/* The fields of the card's address; all others are 0. */
nvmlPciInfo_t pci_address(const struct card *card);

#endif
