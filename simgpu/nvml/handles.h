/* Initialization of the simulated libnvidia-ml, and handles of devices. A handle lives as long as the process. */
#ifndef SIMGPU_NVML_HANDLES_H
#define SIMGPU_NVML_HANDLES_H

#include "hardware/cards.h"
#include "nvml/types.h"

struct nvmlDevice_st {
    char uuid[UUID_SIZE];
};

/* Begins a function that programs call. Returns an injected result, or NVML_ERROR_UNINITIALIZED before nvmlInit. */
nvmlReturn_t nvml_enter(const char *function);
/* nvml_enter, then describes the card as it is now: NVML_ERROR_GPU_IS_LOST when the card is not listed or not healthy.
 */
nvmlReturn_t nvml_enter_card(const char *function, nvmlDevice_t device, struct card *card);

#endif
