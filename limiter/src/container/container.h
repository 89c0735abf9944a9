/* This process's place in its container: its limits, the region it shares, and its slot there. */
#ifndef VGPU_CONTAINER_CONTAINER_H
#define VGPU_CONTAINER_CONTAINER_H

#include "common/limits.h"
#include "region/region.h"

/* Whether anybody limits this process. Where not, nothing is counted. */
bool container_is_limited(void);

/* A card's limit as it is now. */
struct card_limit container_limit(const uint8_t uuid[UUID_SIZE], uint64_t now);

/* Bytes that the container may hold on this card: UNLIMITED, or 0 where the limits cannot be read or do not name it. */
uint64_t container_memory_limit(const uint8_t uuid[UUID_SIZE]);

/* What becomes of allocations within the limit when a card is full, as it is now. */
enum memory_policy container_memory_policy(void);

/* The percentage of a card's time that this process is held to now, 0 for none; and whether there is such a card. */
unsigned container_share(const uint8_t uuid[UUID_SIZE]);
bool container_has_shares(void);

/* The region, or NULL where there is none that can be used. */
struct region *container_region(void);

/* The path of the socket to the node's arbiter, or NULL where nobody named one. */
const char *container_arbiter_socket(void);

/* Who this process is. */
struct identity container_self(void);

/* This process's slot, taken where it has none; -1 when all are taken. Under the region's lock. */
int container_claim_slot(struct region *region);

/* The slot that this process has taken, or -1. Needs no lock. */
int container_slot(const struct region *region);

/* Takes this process's slot, and the card's row in the region, where they are not there yet. */
void container_join(const uint8_t uuid[UUID_SIZE]);

/* After an exec: the slot of this process's former image, whose memory the driver has freed, is cleared. */
void container_clear_former_image(void);

#endif
