/* Which card a CUDA or NVML device is: by UUID, for CUDA and NVML count in different orders. */
#ifndef VGPU_DRIVER_CARDS_H
#define VGPU_DRIVER_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"
#include "region/region.h"

/* The card of a CUDA device; false where the driver does not know the device. */
bool cards_of_device(CUdevice device, uint8_t uuid[UUID_SIZE]);

/* The card of the calling thread's context; false where there is none. */
bool cards_current(uint8_t uuid[UUID_SIZE]);

/* Whether there is one device: then no context is on another, and the driver needs not be asked. Most containers have
 * one. */
bool cards_is_single(void);

/* The card of the calling thread's context, which it is known to have. */
bool cards_of_context(uint8_t uuid[UUID_SIZE]);

/* The card of an NVML device; false where NVML does not know it. */
bool cards_of_nvml(nvmlDevice_t device, uint8_t uuid[UUID_SIZE]);

#endif
