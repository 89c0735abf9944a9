/* Reports a refused allocation: counted in the region, for metrics, and logged for the program's user. */
#ifndef VGPU_CHARGE_RESERVE_REFUSALS_H
#define VGPU_CHARGE_RESERVE_REFUSALS_H

#include <stdint.h>

#include "region/region.h"

/* Reports that `function_name` was refused `bytes` of a card's memory. May take LOCK_REGION; the caller holds no
 * lock. */
void refusals_report(const char *function_name, const uint8_t uuid[UUID_SIZE], uint64_t bytes);

#endif
