/* Arithmetic on a region: no CUDA, no clock, no file, no lock. Whoever calls a function that writes holds the lock.
 *
 * A region may hold anything (its container can write it), so places are checked, and sums saturate instead of
 * wrapping.
 */
#ifndef VGPU_ACCOUNT_H
#define VGPU_ACCOUNT_H

#include "region.h"

/* The row of a card, or -1. Needs no lock. */
int account_find_card(const struct region *region, const uint8_t uuid[UUID_SIZE]);

/* The row of a card, made where there is none; -1 when all are taken. */
int account_card(struct region *region, const uint8_t uuid[UUID_SIZE]);

/* A slot for this process: the one it has already, else a free one; -1 when all are taken. */
int account_claim(struct region *region, const struct identity *who);

/* Whether the slot is this process's. Needs no lock. */
bool account_owns(const struct region *region, int slot, const struct identity *who);

/* The slot that this process holds, or -1. Needs no lock. */
int account_slot_of(const struct region *region, const struct identity *who);

/* Charges `bytes` if the card's sum stays within `limit`; otherwise counts a refusal and changes nothing else. */
bool account_reserve(struct region *region, int slot, int card, uint64_t bytes, uint64_t limit);

/* Takes back a charge; never below zero. */
void account_release(struct region *region, int slot, int card, uint64_t bytes);

/* Frees a slot and takes its charges back. */
void account_clear(struct region *region, int slot);

/* Makes the cards' sums again from the slots, after a holder of the lock died. */
void account_recompute(struct region *region);

/* Bytes that the process of that pid in that namespace is charged on a card; false where it has no slot. Needs no
 * lock. */
bool account_of_process(const struct region *region, uint32_t pid, uint64_t namespace, int card, uint64_t *bytes);

/* Bytes charged on a card. Needs no lock. */
uint64_t account_used(const struct region *region, int card);

#endif
