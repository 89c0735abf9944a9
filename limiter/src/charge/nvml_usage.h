/* What NVML says that the processes on a card hold. Exact and without lag, but for managed memory, which it counts as
 * nobody's; inside a pid namespace it names that namespace's processes by their pids there. One question takes 20 to
 * 32 us (measured on an H200, driver 580). */
#ifndef VGPU_CHARGE_NVML_USAGE_H
#define VGPU_CHARGE_NVML_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"
#include "region/region.h"

struct nvml_usage {
    unsigned count;
    nvmlProcessInfo_t *processes;
};

/* Makes NVML ready, which takes 8 to 12 ms the first time; at the first context's creation, never at a program's start.
 * Where there is no NVML, nothing can be measured, and what is charged stands. */
void nvml_usage_start(void);

/* All processes on a card, for the caller to free; false where NVML is not ready or does not say. */
bool nvml_usage_read(const uint8_t uuid[UUID_SIZE], struct nvml_usage *usage);

void nvml_usage_free(struct nvml_usage *usage);

/* What a process holds by those usage: 0 where they do not name it. False where they name it without a figure, as on
 * a virtual GPU. */
bool nvml_usage_of_process(const struct nvml_usage *usage, uint32_t pid, uint64_t *bytes);

/* Whether NVML has been seen to follow this process's own memory. Until then its word is not taken for ours: it may not
 * see us, or by another pid. */
bool nvml_usage_is_trusted(void);
void nvml_usage_trust(void);

#endif
