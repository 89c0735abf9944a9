/* Reads from NVML how much memory each process holds on a card.
 *
 * The figures are exact and without lag, except that managed memory is counted for no process. Inside a pid namespace
 * NVML names that namespace's processes, by their pids there. One query takes 20 to 32 us (measured on an H200, driver
 * 580). Takes no lock; any thread may call. */
#ifndef VGPU_CHARGE_NVML_NVML_USAGE_H
#define VGPU_CHARGE_NVML_NVML_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"
#include "region/region.h"

struct nvml_usage {
    unsigned count;
    nvmlProcessInfo_t *processes; /* allocated; NULL: none */
};

/* Initialises NVML, which takes 8 to 12 ms the first time; charge/nvml/nvml_start.h hides that. On error nothing can be
 * measured and charges stay as they were made. */
void nvml_usage_start(void);

/* Reads all processes on a card; the caller frees them with `nvml_usage_free`. False, with nothing to free, if NVML
 * fails or was never started. NVML that was started and is not initialised is initialised first, about every 0.1 s. */
bool nvml_usage_read(const uint8_t uuid[UUID_SIZE], struct nvml_usage *usage);

void nvml_usage_free(struct nvml_usage *usage);

/* Bytes that a process holds according to `usage`; 0 if it is not listed. False if it is listed without a figure, as on
 * a virtual GPU. */
bool nvml_usage_of_process(const struct nvml_usage *usage, uint32_t pid, uint64_t *bytes);

/* Bytes that this process holds on a card; 0 if it is not listed. False if that is not known. */
bool nvml_usage_read_own(const uint8_t uuid[UUID_SIZE], uint64_t *bytes);

/* Whether NVML's figure has been seen to grow with this process's own memory. Until then its figures are not charged:
 * NVML may not see this process, or may know it by another pid. */
bool nvml_usage_is_trusted(void);

/* Notes that NVML's figure follows this process's memory. */
void nvml_usage_trust(void);

#endif
