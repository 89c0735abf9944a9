/* Calls of the driver about a device's primary context. They take no lock. */
#ifndef VGPU_DRIVER_PRIMARY_CONTEXT_H
#define VGPU_DRIVER_PRIMARY_CONTEXT_H

#include <stdbool.h>

#include "driver/abi.h"

/* Whether the device has a primary context; false where the driver does not say. */
bool primary_context_is_active(CUdevice device);

/* Releases one reference. */
CUresult primary_context_release(CUdevice device);

#endif
