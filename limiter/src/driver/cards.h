/* Maps CUDA and NVML devices to cards, which are known by UUID: CUDA and NVML number devices in different orders. */
#ifndef VGPU_DRIVER_CARDS_H
#define VGPU_DRIVER_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"
#include "region/region.h"

/* UUID of a CUDA device's card; false where the driver does not know the device. */
bool cards_of_device(CUdevice device, uint8_t uuid[UUID_SIZE]);

/* UUID of the current context's card; false where the calling thread has no current context. */
bool cards_current(uint8_t uuid[UUID_SIZE]);

/* Whether the current context is on the card; then sets `device`, which may be NULL. */
bool cards_is_current(const uint8_t uuid[UUID_SIZE], CUdevice *device);

/* Whether CUDA shows exactly one device, as in most containers: then every context is on that device, and the driver
 * need not be asked for the current one. */
bool cards_is_single(void);

/* UUID of the current context's card. The calling thread must have a current context: with a single device, it is not
 * checked, which saves a driver call. */
bool cards_of_context(uint8_t uuid[UUID_SIZE]);

/* UUID of an NVML device's card; false where NVML does not know the device. */
bool cards_of_nvml(nvmlDevice_t device, uint8_t uuid[UUID_SIZE]);

#endif
