/* Charges as the program is shown them by cuMemGetInfo and NVML. The caller holds no lock. */
#ifndef VGPU_CHARGE_RESERVE_USAGE_VIEW_H
#define VGPU_CHARGE_RESERVE_USAGE_VIEW_H

#include "region/region.h"

struct usage_view {
    uint64_t limit; /* bytes that the container may hold on the card; UNLIMITED: no limit */
    uint64_t used;  /* bytes that its processes hold; a dead process counts for up to 100 ms; 0 without a limit */
};

/* The container's limit and usage of a card. Brings the usage up to date first, if that is due. */
struct usage_view usage_view_of_card(const uint8_t uuid[UUID_SIZE]);

/* Bytes that a process holds on a card; `pid` is as this process's pid namespace numbers it. False if it is no process
 * of the container, or has never used a card. */
bool usage_view_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes);

#endif
