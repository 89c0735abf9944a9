/* Arithmetic on a region: no CUDA, no clock, no file, no lock. Whoever calls a function that writes holds the lock.
 *
 * A region may hold anything (its container can write it), so places are checked, and sums saturate instead of
 * wrapping.
 */
#ifndef VGPU_REGION_ACCOUNT_H
#define VGPU_REGION_ACCOUNT_H

#include <stdbool.h>

#include "common/region_layout.h"

/* The row of a card, or -1. Needs no lock. */
int account_find_card(const struct region *region, const uint8_t uuid[UUID_SIZE]);

/* The row of a card, made where there is none; -1 when all are taken. */
int account_card(struct region *region, const uint8_t uuid[UUID_SIZE]);

/* A slot for this process: the one it has already, else a free one; -1 when all are taken. */
int account_claim(struct region *region, const struct identity *who);

/* Whether the slot is this process's. Needs no lock. */
bool account_owns(const struct region *region, int slot, const struct identity *who);

/* One past the highest slot ever taken. Needs no lock. */
int account_slots(const struct region *region);

/* The slot that this process holds, or -1. Needs no lock. */
int account_slot_of(const struct region *region, const struct identity *who);

/* Charges `bytes` if the card's sum stays within `limit`; otherwise false, and nothing is changed. */
bool account_reserve(struct region *region, int slot, int card, uint64_t bytes, uint64_t limit);

/* Charges what is there already, whatever the limit. */
void account_charge(struct region *region, int slot, int card, uint64_t bytes);

/* Takes back a charge; never below zero. */
void account_release(struct region *region, int slot, int card, uint64_t bytes);

/* Marks `bytes` of what is charged as managed, which NVML does not count; or takes the mark back. */
void account_mark_managed(struct region *region, int slot, int card, uint64_t bytes);
void account_unmark_managed(struct region *region, int slot, int card, uint64_t bytes);

/* Counts an allocation that was refused. Needs no lock. */
void account_count_refusal(struct region *region, int card);

/* Counts an allocation that was served from managed memory, for the card was full. */
void account_count_spill(struct region *region, int card, uint64_t bytes);

/* The span in which the driver's memory and the slot may differ: around a call that changes what the process holds.
 * Need no lock. */
void account_begin_call(struct region *region, int slot);
void account_end_call(struct region *region, int slot);

/* The calls of a slot: how many are under way in the low 32 bits, how many were begun in the high ones. Needs no lock.
 */
uint64_t account_calls(const struct region *region, int slot);

/* Charges a process with what NVML said it holds, and with its managed memory. False, and nothing is changed, where a
 * call of the slot was under way or has begun since `calls` was read, which was before NVML was asked; but for `own`
 * calls, by which the caller knows that the driver has ended. */
bool account_reconcile(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls, unsigned own);

/* The same of another process. Of what that shares, NVML says less while others have it, when it ends or has given it
 * back: so much more may be right, and is left. */
bool account_reconcile_other(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls);

/* Adds a row of shares.h, and takes back what was charged to its slot ahead of it. False where the table is full:
 * nothing has changed. What a row makes orphaned is charged whatever the limit. */
bool account_add_pool_export(struct region *region, const struct region_pool_export *row, uint64_t claimed);

/* Ends the rows of a process's pool, and takes back a charge: at no moment is what others have charged to nobody. */
void account_end_pool_exports(struct region *region, int slot, uint64_t pool, int card, uint64_t bytes);

/* Frees a slot and takes its charges back; what it shared and others have is charged as orphaned then. */
void account_clear(struct region *region, int slot);

/* Makes the cards' sums again from the slots and the shares, after a holder of the lock died. */
void account_recompute(struct region *region);

/* Bytes that the process of that pid in that namespace is charged on a card; false where it has no slot. Needs no
 * lock. */
bool account_used_by_process(const struct region *region, uint32_t pid, uint64_t namespace, int card, uint64_t *bytes);

/* Bytes charged on a card. Needs no lock. */
uint64_t account_used(const struct region *region, int card);

/* How often a measurement changed what was charged to a process on a card; and where that stands, to be read
 * atomically, NULL where the slot or the card is none. Needs no lock. */
uint32_t account_corrections(const struct region *region, int slot, int card);
const uint32_t *account_corrections_field(const struct region *region, int slot, int card);

#endif
