/* The limits as they stand now, and the region that goes with them. Not locked: charge.c is its one user, and locks. */
#ifndef VGPU_CONTAINER_LIMITS_SOURCE_H
#define VGPU_CONTAINER_LIMITS_SOURCE_H

#include "common/limits.h"
#include "region/region.h"

struct limits_source;

/* Opens what the settings name. Never NULL: what cannot be read denies, and says so in the log. */
struct limits_source *limits_source_open(void);

/* Whether anything limits this process. */
bool limits_source_is_limited(const struct limits_source *source);

/* A card's limit as the file says `now` (in ticks). Where the file cannot be read the last good copy holds; without
 * one, nothing may be used. */
struct card_limit limits_source_limit(struct limits_source *source, const uint8_t uuid[UUID_SIZE], uint64_t now);

/* What becomes of allocations within the limit when a card is full, as the file says now. */
enum memory_policy limits_source_memory_policy(struct limits_source *source);

/* The percentage of a card's time that this process is held to: 1 to 99, or 0 where nothing holds it. The policies that
 * may use idle time are not held on a card that they have to themselves. */
unsigned limits_source_share(struct limits_source *source, const uint8_t uuid[UUID_SIZE]);

/* Whether that is so on any card. */
bool limits_source_has_shares(struct limits_source *source);

/* The region, or NULL where it cannot be used: then every allocation is refused. */
struct region *limits_source_region(const struct limits_source *source);

/* The path of the socket to the node's arbiter; NULL where the settings name none. */
const char *limits_source_arbiter_socket(const struct limits_source *source);

/* The region's file mapped a second time, for the caller to close; NULL where the settings name none. */
struct region *limits_source_open_region(void);

#endif
