/* The process's view of its container: the limits, the region that all processes of the container share, and this
 * process's slot in it.
 *
 * The functions that report a limit, a share or a policy take LOCK_CONTAINER at each call, the others at their first
 * call in a process. So the caller must not hold the region's lock at a first call: LOCK_CONTAINER ranks above it. */
#ifndef VGPU_CONTAINER_CONTAINER_H
#define VGPU_CONTAINER_CONTAINER_H

#include "common/limits.h"
#include "container/limits_source.h"
#include "region/region.h"

/* Whether limits apply to this process. Where not, nothing is charged. */
bool container_is_limited(void);

/* The present limit of a card; `now` is clock_ticks(). */
struct card_limit container_limit(const uint8_t uuid[UUID_SIZE], uint64_t now);

/* The present memory limit of a card in bytes; UNLIMITED for none, 0 where the limits cannot be read or do not name the
 * card. */
uint64_t container_memory_limit(const uint8_t uuid[UUID_SIZE]);
/* The same, after a look at the limits file, which else is looked at every 17 ms. */
uint64_t container_newest_memory_limit(const uint8_t uuid[UUID_SIZE]);

/* The present policy for allocations within the limit when the card is full. */
enum memory_policy container_memory_policy(void);

/* The share of a card's time in percent (1 to 99) that this process is limited to now; 0 = no limit. */
unsigned container_share(const uint8_t uuid[UUID_SIZE]);

/* Whether container_share is not 0 for any card. */
bool container_has_shares(void);

/* The region, or NULL where it cannot be used: every allocation is then refused. */
struct region *container_region(void);

/* Path of the socket to the node's arbiter, or NULL where none is configured. */
const char *container_arbiter_socket(void);

/* Which MPS server this process may be a client of. */
struct space_limits container_space(void);

/* Whether this process is a client of its group's MPS server. False until that was noted after cuInit. */
bool container_is_space_client(void);

/* When that was noted (CLOCK_MONOTONIC); 0 = the process is no client. */
uint64_t container_space_client_since(void);
void container_note_space_client(void);

/* Whether the container may have managed memory. A member of a group in space may not (docs/adr/0174). */
bool container_has_managed_memory(void);

/* Identity of this process. */
struct identity container_self(void);

/* This process's slot, taken where it has none; -1 where all slots are taken. The caller holds the region's lock
 * (LOCK_REGION), and has called container_self or container_slot before taking it. */
int container_claim_slot(struct region *region);

/* This process's slot, or -1. Does not need the region's lock. */
int container_slot(const struct region *region);

/* Takes this process's slot and creates the card's row, where they do not exist yet. Takes the region's lock for that,
 * and does nothing if the lock cannot be had within REGION_LOCK_MS. */
void container_join(const uint8_t uuid[UUID_SIZE]);

/* Clears the slot of the program that this process ran before exec(): exec frees that program's memory on the cards,
 * but keeps pid and start time. Called once at the start, and only maps the region's file for that. The slot of another
 * copy of this library in this program stays (driver/loading.c). */
void container_clear_former_image(void);

#endif
