/* Charges for small arrays (up to PIECE_MAX bytes). The driver packs them into chunks of GRANULARITY bytes, and no
 * array lies in two chunks (measured on an H200, driver 580). So a chunk is charged when an array no longer fits into
 * what is left of the chunk that was charged last. Where freed arrays leave holes, the driver may hold more chunks than
 * the remaining arrays would fill; only a measurement by NVML can tell.
 *
 * `corrections` is account_corrections of this process and card: how often a measurement has changed the charge. The
 * caller has a call under way (charge_begin_call), so that no measurement changes the charge in between. Every function
 * takes LOCK_ARRAY_CHUNKS. Pure apart from that. */
#ifndef VGPU_BOOKS_ARRAYS_ARRAY_CHUNKS_H
#define VGPU_BOOKS_ARRAYS_ARRAY_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

/* Adds an array of `bytes` on a device if it fits into a chunk that is charged already. */
bool array_chunks_join(int device, uint64_t bytes, uint32_t corrections);

/* Adds an array and a chunk, for which the caller has charged GRANULARITY bytes. */
void array_chunks_add(int device, uint64_t bytes, uint32_t corrections);

/* What the caller does after an array has ended: releases `bytes` of the charge, then measures if `is_due`. */
struct array_chunks_removal {
    uint64_t bytes;
    bool is_due;
};

/* Removes an array. The surplus, which is the charge of chunks that the remaining arrays would not fill, is released at
 * once where NVML cannot be asked (`is_measurable` false), and with the last array if no measurement has changed the
 * charge. Else it stays charged until it is worth a measurement, which takes 30 us: from 16 MiB on, or with the last
 * array. */
struct array_chunks_removal array_chunks_remove(int device, uint64_t bytes, uint32_t corrections, bool is_measurable);

#endif
