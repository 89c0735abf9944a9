/* Small arrays share chunks of GRANULARITY bytes, none of them in two (measured on an H200, driver 580): so a chunk is
 * charged when one no longer fits into what is left of the last. Where freed ones leave holes, the driver may hold more
 * chunks than what is left would fill: only a measurement can tell. Pure but for its own lock. */
#ifndef VGPU_BOOKS_ARRAY_CHUNKS_H
#define VGPU_BOOKS_ARRAY_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

/* An array of those bytes more on a device, of PIECE_MAX at most, if there is room for it in what is charged.
 * `measured` is how often a measurement has changed that; the caller is in a call's span, so that none does so
 * meanwhile. */
bool array_chunks_join(int device, uint64_t bytes, uint32_t measured);

/* An array for which the caller has charged GRANULARITY. Room that is not charged yet is nobody's: that may be refused.
 */
void array_chunks_add(int device, uint64_t bytes, uint32_t measured);

/* After one's end: `bytes` of the charge are to be released; then, where `is_due`, the charge is to be measured. */
struct array_chunks_removal {
    uint64_t bytes;
    bool is_due;
};

/* One less. Where nothing can be measured, what the rest would not fill is released; else that stays charged until it
 * is so much that a measurement is worth its 30 us. */
struct array_chunks_removal array_chunks_remove(int device, uint64_t bytes, uint32_t measured, bool is_measurable);

#endif
