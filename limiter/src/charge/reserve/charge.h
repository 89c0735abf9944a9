/* Charges this process's memory against the container's limit: reserve before the driver's call, and what makes room
 * when a reservation does not fit.
 *
 * The sum is compared with the limit under LOCK_REGION, which is held for arithmetic only and waited for up to
 * REGION_LOCK_MS. If the lock cannot be had in that time, a reservation is refused, and an unconditional charge or a
 * mark is made when this process next holds the lock. The caller holds no lock. Functions that charge, mark or trim are
 * used within a call of the calling thread (`charge_begin_call`). */
#ifndef VGPU_CHARGE_RESERVE_CHARGE_H
#define VGPU_CHARGE_RESERVE_CHARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

/* A charge made before the driver's call. */
struct reservation {
    int card; /* row in the region; -1: none */
    uint64_t bytes;
    bool has_reaped; /* a dead process's charge was cleared to make room; the driver may still be freeing its memory */
    int retries;     /* how often the driver's call was repeated after `has_reaped` */
};

/* Whether an allocation within the limit is served from managed memory when the card is full: the policy is `spill`,
 * and the card has a limit. Without a limit only the host's memory would bound the spilled bytes. */
bool charge_may_spill(const uint8_t uuid[UUID_SIZE]);

/* Opens a call: the time in which NVML's figure and the charge of this process may differ, from before the driver's
 * call until the charge is right. Meanwhile no other thread or process reconciles this process (reconcile.h). Takes the
 * process's slot in the region if it has none. Returns the slot, for `charge_end_call`; -1 if there is none. */
int charge_begin_call(void);

/* Closes a call. Nothing happens if `call_slot` is -1. */
void charge_end_call(int call_slot);

/* Charges `bytes` if they fit now, and sets `reservation`; otherwise false, and nothing is charged or reported. */
bool charge_try(const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation);

/* Bytes that this process, or the container, is charged on a card; 0 without a region. Neither takes a lock. */
uint64_t charge_of_process(const uint8_t uuid[UUID_SIZE]);
uint64_t charge_of_container(const uint8_t uuid[UUID_SIZE]);

/* Has the driver give back what is idle on a card: free memory of pools and of graphs. */
void charge_trim_idle(const uint8_t uuid[UUID_SIZE]);

/* `charge_trim_idle`, then sets all charges on the card to what is held. */
void charge_trim_and_correct(const uint8_t uuid[UUID_SIZE]);

/* Charges `bytes` and sets `reservation`. If they do not fit, makes room first: clears the charges of dead processes,
 * corrects charges that are too high, trims idle memory. False if that does not help: nothing is charged, and the
 * refusal is counted and logged with `function_name`. May take up to 40 ms for each measurement. */
bool charge_reserve(const char *function_name, const uint8_t uuid[UUID_SIZE], uint64_t bytes,
                    struct reservation *reservation);

/* Charges memory that the driver has given already, whatever the limit. `card` is the region's row. */
void charge_unconditionally(int card, uint64_t bytes);

/* Marks `bytes` of the charge as not contained in NVML's figure: managed memory, or physical memory that NVML counts
 * for no process. Reconciling adds them to NVML's figure. */
void charge_mark_managed(int card, uint64_t bytes);

/* Removes the mark from `bytes` that NVML counts again. */
void charge_unmark_managed(int card, uint64_t bytes);

/* Counts an allocation that was served from managed memory because the card is full. */
void charge_count_spill(int card, uint64_t bytes);

#endif
