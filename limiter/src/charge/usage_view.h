/* What is charged, as the program is shown it. */
#ifndef VGPU_CHARGE_USAGE_VIEW_H
#define VGPU_CHARGE_USAGE_VIEW_H

#include "region/region.h"

/* The same, and the bytes that the container's living processes hold on this card; of one that died, up to 100 ms
 * longer. Without a limit nobody asks for them: then they are 0. */
struct usage_view {
    uint64_t limit;
    uint64_t used;
};
struct usage_view usage_view_of_card(const uint8_t uuid[UUID_SIZE]);

/* Bytes that the process of that pid, as this process knows it, holds on this card; false where it is none of the
 * container's that has ever used a card. */
bool usage_view_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes);

#endif
