/* Reconciles charges with NVML: sets a process's charge on a card to NVML's figure plus its managed memory.
 *
 * A figure is read without a lock, and applied under LOCK_POOLS and LOCK_REGION only if the process had no call open
 * (charge.h) when NVML was asked and has begun none since; otherwise figure and charge may rightly differ. The calling
 * thread's own calls are excepted by `own_calls`: how many it has open, whose driver call is over or has not begun. See
 * docs/adr/0013. Nothing happens until NVML is trusted (nvml_usage.h). The caller holds no lock. */
#ifndef VGPU_CHARGE_RECONCILE_RECONCILE_H
#define VGPU_CHARGE_RECONCILE_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "region/region.h"

/* Reconciles this process on a card, and the others where orphaned memory (region/memory_exports.h) is charged to the
 * card: NVML counts it for one of them. Tries up to 5 times, within 40 ms. False if no try succeeded: NVML is missing
 * or not trusted, or other threads always had calls open. */
bool reconcile_own(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

/* Reconciles this process on a card with a single try, for callers that can leave it to a later one. */
bool reconcile_once(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

/* `reconcile_own`, and in the same tries every other process of the container in this pid namespace. Returns whether
 * this process was reconciled. */
bool reconcile_all(const uint8_t uuid[UUID_SIZE], unsigned own_calls);

/* Reconciles every other process on every card. Returns whether all could be reconciled. */
bool reconcile_others(void);

/* `reconcile_all` on every card that the container uses. Returns whether this process was reconciled on all. */
bool reconcile_every_card(unsigned own_calls);

/* Reconciles this process, and with `with_others` every other one, with a single try if one is due: 10 ms after the
 * last, up to 100 ms while tries find nothing new, and never more than 0.5 % of the time. Returns whether a try was
 * made and succeeded for this process. */
bool reconcile_if_due(const uint8_t uuid[UUID_SIZE], unsigned own_calls, bool with_others);

/* Makes the next `reconcile_if_due` on each card due as early as allowed, after something that may have taken memory
 * without a call, such as code loaded at a kernel's first launch. */
void reconcile_soon(void);

#endif
