/* This process's place in its container: its limits, the region it shares, and its slot there. */
#ifndef VGPU_PLACE_H
#define VGPU_PLACE_H

#include "common/limits.h"
#include "region/region.h"

/* Whether anybody limits this process. Where not, nothing is counted. */
bool place_is_limited(void);

/* A card's limit as it is now. */
struct card_limit place_limit(const uint8_t uuid[UUID_SIZE], uint64_t now);

/* What becomes of allocations within the limit when a card is full, as it is now. */
enum memory_policy place_memory_policy(void);

/* The percentage of a card's time that this process is held to now, 0 for none; and whether there is such a card. */
unsigned place_share(const uint8_t uuid[UUID_SIZE]);
bool place_has_shares(void);

/* The region, or NULL where there is none that can be used. */
struct region *place_region(void);

/* The path of the socket to the node's arbiter, or NULL where nobody named one. */
const char *place_arbiter(void);

/* Who this process is. */
struct identity place_self(void);

/* This process's slot, taken where it has none; -1 when all are taken. Under the region's lock. */
int place_claim_slot(struct region *region);

/* The slot that this process has taken, or -1. Needs no lock. */
int place_slot(const struct region *region);

/* Around a fork, and in the child, which has no slot. */
void place_lock(void);
void place_unlock(void);
void place_forget(void);

#endif
