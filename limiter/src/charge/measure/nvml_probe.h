/* Finds out whether NVML's figure follows this process's memory (charge/nvml/nvml_usage.h), by memory taken for a
 * moment. */
#ifndef VGPU_CHARGE_MEASURE_NVML_PROBE_H
#define VGPU_CHARGE_MEASURE_NVML_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "charge/reserve/memory_class.h"
#include "driver/abi.h"
#include "region/region.h"

/* Whether a probe can be made: the device has physical memory to give, which all but some virtual GPUs have, and
 * `bytes` fit the limit together with the probe's. */
bool nvml_probe_is_possible(CUdevice device, const uint8_t uuid[UUID_SIZE], uint64_t bytes);

/* Takes GRANULARITY bytes (books/pointers/pointers.h) of the device's memory, sees whether NVML's figure of this
 * process grows by it, and gives it back; trusts NVML if so. They are charged meanwhile. Takes 0.1 ms, or nothing if
 * NVML is trusted already. The caller holds no lock, and measures this process afterwards. */
void nvml_probe(CUdevice device, const uint8_t uuid[UUID_SIZE]);

/* Makes the probe that could not be made with the context, once NVML answers (charge/reserve/memory_class.h). */
extern const struct memory_class nvml_probe_class;

#endif
