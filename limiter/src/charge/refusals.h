/* A refusal is told twice: counted in the region, for the node to see, and in a line for the program's user. */
#ifndef VGPU_CHARGE_REFUSALS_H
#define VGPU_CHARGE_REFUSALS_H

#include <stdint.h>

#include "region/region.h"

/* `what` is the function that asked for `bytes` of a card's memory. */
void refusals_report(const char *function_name, const uint8_t uuid[UUID_SIZE], uint64_t bytes);

#endif
