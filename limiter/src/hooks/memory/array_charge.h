/* Charges arrays as the driver lays them out: arrays of up to PIECE_MAX share chunks (books/arrays/array_chunks.h), a
 * larger one has chunks of its own. The caller holds no lock. */
#ifndef VGPU_HOOKS_MEMORY_ARRAY_CHARGE_H
#define VGPU_HOOKS_MEMORY_ARRAY_CHARGE_H

#include "books/arrays/array_records.h"
#include "charge/reserve/attempt.h"

/* Reserves an array of `array_record->bytes` on `array_record->device`, before the driver's call. */
struct attempt array_charge_begin(const char *function_name, const struct array_record *array_record);

/* Releases an array's charge, after the driver failed to create it or has destroyed it. The calling thread has one call
 * open (charge/reserve/charge.h). */
void array_charge_release(const struct array_record *array_record);

#endif
