/* Estimates by the driver's figure of free memory what a call took or gave back, while NVML does not answer. The figure
 * is the card's, so what other containers do during the call is in the estimate; NVML corrects it when it answers. All
 * functions are for the current context, and the caller holds no lock. */
#ifndef VGPU_CHARGE_MEASURE_FREE_MEMORY_H
#define VGPU_CHARGE_MEASURE_FREE_MEMORY_H

#include <stdint.h>

/* Free bytes of the current context's card; UINT64_MAX if they are not known. */
uint64_t free_memory_read(void);

/* Charges the bytes by which free memory has fallen below `before`, less `charged`, which are charged already; nothing
 * if either figure is not known. `card` is the region's row. Returns the bytes. */
uint64_t free_memory_charge_fall(int card, uint64_t before, uint64_t charged);

/* Takes back, of what free_memory_charge_fall has charged, up to the bytes by which free memory has risen above
 * `before`. */
void free_memory_release_rise(int card, uint64_t before);

/* Takes back an estimate whose call was undone. */
void free_memory_release(int card, uint64_t bytes);

/* Bytes that free_memory_charge_fall has charged on a card and that were not taken back. */
uint64_t free_memory_charged(int card);

#endif
