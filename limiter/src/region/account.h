/* Accounting in a region: slots of processes, rows of cards, charges in bytes. Pure arithmetic: no CUDA, no clock, no
 * file, no waiting.
 *
 * The caller holds the region's lock (LOCK_REGION), except where a function says that it needs no lock. `slot` and
 * `card` are indices into the region's slots and card rows. The container's processes can write anything into a region,
 * so indices are checked (an invalid index changes nothing) and sums saturate instead of wrapping. */
#ifndef VGPU_REGION_ACCOUNT_H
#define VGPU_REGION_ACCOUNT_H

#include <stdbool.h>

#include "common/region_layout.h"

/* The card's row, or -1. Needs no lock. */
int account_find_card(const struct region *region, const uint8_t uuid[UUID_SIZE]);

/* Whether the row is a card's: its other fields may be read then. Needs no lock. */
bool account_has_card(const struct region *region, int card);

/* The card's row, created where the card has none; -1 where all rows are taken. */
int account_find_or_add_card(struct region *region, const uint8_t uuid[UUID_SIZE]);

/* The slot of a process, taken where it has none; -1 where all slots are taken. */
int account_claim_slot(struct region *region, const struct identity *process);

/* The slot that account_claim_slot would return, or -1. */
int account_slot_to_claim(const struct region *region, const struct identity *process);

/* Notes whether the process that has or will claim the slot holds its file lock (region/slot_locks.h). */
void account_note_lock(struct region *region, int slot, bool is_locked);

/* Whether the slot's owner has noted that it holds the slot's file lock. Needs no lock. */
bool account_has_lock(const struct region *region, int slot);

/* Notes the number of the program that the slot's process runs (identity_image), and returns it. */
void account_note_image(struct region *region, int slot, uint32_t image);
uint32_t account_image(const struct region *region, int slot);

/* Whether the slot belongs to the process. Needs no lock. */
bool account_owns(const struct region *region, int slot, const struct identity *process);

/* One past the highest slot that was ever used. Needs no lock. */
int account_slots(const struct region *region);

/* The slot of a process, or -1. Needs no lock. */
int account_slot_of(const struct region *region, const struct identity *process);

/* Charges `bytes` where the card's sum stays within `limit`; otherwise returns false and charges nothing. */
bool account_reserve(struct region *region, int slot, int card, uint64_t bytes, uint64_t limit);

/* Charges `bytes` without comparing with a limit, for memory that is allocated already. */
void account_charge(struct region *region, int slot, int card, uint64_t bytes);

/* Takes back a charge of `bytes`; the charge does not go below zero. */
void account_release(struct region *region, int slot, int card, uint64_t bytes);

/* Takes back a charge of `former` and charges `bytes` instead, so that no reader without the lock sees a sum between.
 */
void account_replace(struct region *region, int slot, int card, uint64_t former, uint64_t bytes);

/* Marks `bytes` of the charge as memory that NVML does not count, such as managed memory, or removes the mark. */
void account_mark_managed(struct region *region, int slot, int card, uint64_t bytes);
void account_unmark_managed(struct region *region, int slot, int card, uint64_t bytes);

/* Counts a refused allocation. Needs no lock. */
void account_count_refusal(struct region *region, int card);

/* Counts an allocation of `bytes` that was served from managed memory because the card was full. */
void account_count_spill(struct region *region, int card, uint64_t bytes);

/* Begin and end of a call that changes what the slot's process holds. During a call the driver's memory and the slot's
 * charge may differ, so the slot is not reconciled. Neither needs a lock. */
void account_begin_call(struct region *region, int slot);
void account_end_call(struct region *region, int slot);

/* The slot's calls: the number under way in the low 32 bits, those begun so far in the high 32 bits. Needs no lock. */
uint64_t account_calls(const struct region *region, int slot);

/* Sets the process's charge to `bytes`, which NVML reported, and its managed memory. `calls` is the value of
 * account_calls from before NVML was asked. Returns false and changes nothing where a call has begun since then, or
 * where calls are under way other than `own` calls of the caller's, whose driver part has ended. */
bool account_reconcile(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls, unsigned own);

/* account_reconcile for a process that NVML does not list; `bytes` is what it is known to hold. Its figure says nothing
 * about memory that it has imported, so orphaned memory (region/memory_exports.h) stays charged to the card. */
bool account_reconcile_unlisted(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls,
                                unsigned own);

/* account_reconcile for another process than the caller. Where that process exports pool memory, or other memory that
 * a process has imported, its charge is lowered no further than to NVML's figure and these bytes: NVML reports less
 * than the process holds while it ends and after it has trimmed a pool, although other processes keep the memory. */
bool account_reconcile_other(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls);

/* Adds a row of region/pool_exports.h, and takes back `claimed` bytes that its process was charged ahead. Returns false
 * and changes nothing where the table is full. Memory that the row shows to be orphaned is charged without a limit. */
bool account_add_pool_export(struct region *region, const struct region_pool_export *row, uint64_t claimed);

/* Ends the rows of a process's pool and takes back a charge of `bytes` in one step, so that memory which importers
 * still hold is charged at every moment. Nothing is taken back where `card` is not valid. */
void account_end_pool_exports(struct region *region, int slot, uint64_t pool, int card, uint64_t bytes);

/* Adds a row of region/memory_exports.h. Returns false and changes nothing where the table is full. Memory that the row
 * shows to be orphaned is charged without a limit. */
bool account_add_memory_export(struct region *region, const struct region_memory_export *row);

/* Ends a process's export of a group and takes back a charge of `bytes` in one step, so that memory which importers
 * still hold is charged at every moment. Nothing is taken back where `card` is not valid. */
void account_end_memory_export(struct region *region, int slot, uint64_t group, int card, uint64_t bytes);

/* Takes a reference to imported memory away from a process. */
void account_drop_memory_import(struct region *region, int slot, uint64_t group);

/* Whether memory is charged to the card because NVML's figures for its importers are not charged yet. */
bool account_has_orphaned_memory(const struct region *region, int card);

/* Frees a slot and takes back its charges. Memory that it exported and others still import becomes orphaned memory. */
void account_clear_slot(struct region *region, int slot);

/* Computes the cards' sums from the slots and the exported pointers anew, after a holder of the lock has died. */
void account_recompute(struct region *region);

/* The bytes that a process, given by pid and pid namespace, is charged on a card; false where it has no slot. Needs no
 * lock. */
bool account_used_by_process(const struct region *region, uint32_t pid, uint64_t namespace, int card, uint64_t *bytes);

/* The bytes that a slot's process is charged on a card; 0 where `slot` or `card` is not valid. Needs no lock. */
uint64_t account_used_by_slot(const struct region *region, int slot, int card);

/* Notes whether a process, given by pid and pid namespace, is locked for a checkpoint. Its charges then stay as they
 * are, whatever NVML says. False where it has no slot. Needs no lock. */
bool account_freeze(struct region *region, uint32_t pid, uint64_t namespace, bool is_frozen);

/* Bytes charged on a card. Needs no lock. */
uint64_t account_used(const struct region *region, int card);

/* How often a measurement has changed a process's charge on a card. Needs no lock. */
uint32_t account_corrections(const struct region *region, int slot, int card);

/* The address of that counter, for atomic loads; NULL where `slot` or `card` is not valid. Needs no lock. */
const uint32_t *account_corrections_field(const struct region *region, int slot, int card);

#endif
