/* Initialises NVML beside the creation of a process's first context, in a thread of its own. NVML takes 15 ms for it
 * and its first look at a card. A context takes 110 ms, in which the driver leaves NVML room: both beside each other
 * take 112 ms. Beside cuInit nothing is gained: the driver lets one wait for the other (medians of 12, H200, driver
 * 580). Takes no lock; any thread may call. */
#ifndef VGPU_CHARGE_NVML_NVML_START_H
#define VGPU_CHARGE_NVML_NVML_START_H

#include <stdbool.h>

#include "region/region.h"

struct nvml_start {
    bool has_thread;
};

/* Starts the thread, at the first call in a process. `uuid` is that of the context's card. */
struct nvml_start nvml_start_begin(const uint8_t uuid[UUID_SIZE]);

/* Waits for the thread's end, so that no thread of the library is left when the program goes on: it may fork. A thread
 * that does not reach NVML is left to end by itself without it, and NVML is initialised here. */
void nvml_start_finish(const struct nvml_start *start);

#endif
