/* What an array is charged, as the driver lays it out: small ones share chunks, a large one has its own. */
#ifndef VGPU_HOOKS_MEMORY_ARRAY_CHARGE_H
#define VGPU_HOOKS_MEMORY_ARRAY_CHARGE_H

#include "books/array_records.h"
#include "charge/attempt.h"

/* Before the driver's call, for one of `bytes` on `device`. */
struct attempt array_charge_begin(const char *function_name, const struct array_record *array_record);

/* After it has failed, or after the array's end; in a call's span of the caller's. */
void array_charge_release(const struct array_record *array_record);

#endif
