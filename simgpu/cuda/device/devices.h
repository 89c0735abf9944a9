/* The CUDA devices of this process: the visible cards, in the order of CUDA_VISIBLE_DEVICES. */
#ifndef SIMGPU_CUDA_DEVICE_DEVICES_H
#define SIMGPU_CUDA_DEVICE_DEVICES_H

#include <cuda.h>
#include <stdbool.h>

#include "hardware/cards.h"

/* One device, with its primary context and its pools. */
struct device {
    char uuid[UUID_SIZE];
    CUcontext primary;
    unsigned primary_references;
    unsigned primary_flags;
    CUmemoryPool default_pool;
    CUmemoryPool current_pool;
};

/* Fills the list of devices. Returns CUDA_ERROR_NO_DEVICE when there are none, CUDA_ERROR_UNKNOWN when the file `cards`
 * is malformed, CUDA_ERROR_INVALID_DEVICE when CUDA_VISIBLE_DEVICES names a card twice. */
CUresult devices_find(void);

/* The functions below are called under the driver's lock, as all that headers below cuda/ declare, but for
 * driver/driver.h. */

CUdevice device_count(void);
struct device *device_at(CUdevice ordinal); /* NULL when there is none */
CUdevice device_of_uuid(const char *uuid);  /* -1 when no device of this process has it */
/* Describes the card as the file `cards` is now. Returns false when the card is not listed or not healthy. */
bool device_card(CUdevice ordinal, struct card *out);

#endif
