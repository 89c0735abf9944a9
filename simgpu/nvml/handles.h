/* Handles, shared by the files of the simulated libnvidia-ml. A handle lasts as long as the process. */
#ifndef NVML_DEVICE_H
#define NVML_DEVICE_H

#include "types.h"
#include "hardware/simgpu.h"

struct nvmlDevice_st {
    char uuid[SIM_UUID_SIZE];
};

/* Defines an exported function and declares it before, for no header of NVIDIA's does. */
#define EXPORT(name, ...)                      \
    SIM_EXPORT nvmlReturn_t name(__VA_ARGS__); \
    SIM_EXPORT nvmlReturn_t name(__VA_ARGS__)

/* An injected result, then whether nvmlInit was called. */
nvmlReturn_t nvml_enter(const char *function);
/* nvml_enter, then the card as it is now: NVML_ERROR_GPU_IS_LOST when it is not healthy or gone. */
nvmlReturn_t nvml_card(const char *function, nvmlDevice_t device, Card *card);
nvmlDevice_t nvml_handle(const char *uuid);
/* Copies it, or says that the buffer is too small. */
nvmlReturn_t nvml_text(char *out, unsigned length, const char *text);

#define NVML_ENTER(device, card)                                   \
    do {                                                           \
        nvmlReturn_t entered_ = nvml_card(__func__, device, card); \
        if (entered_ != NVML_SUCCESS) {                            \
            return entered_;                                       \
        }                                                          \
    } while (0)

#endif
