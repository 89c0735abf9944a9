/* The limits in force, from the limits file or from the environment, and the region that goes with them. Not locked:
 * container.c is the only user and serialises the calls by LOCK_CONTAINER. `now` is clock_ticks(). */
#ifndef VGPU_CONTAINER_LIMITS_SOURCE_H
#define VGPU_CONTAINER_LIMITS_SOURCE_H

#include "common/limits.h"
#include "region/region.h"

struct limits_source;

/* Which MPS server this process may be a client of. */
struct space_limits {
    const char *directory; /* pipe directory of the daemon of its group; NULL: in no group, and the program chooses */
    uint8_t group[SPACE_GROUP_SIZE];
    unsigned sm_percentage; /* for all processes of the container; 0: no cap */
};

/* Opens what the settings name; called once in a process. Never NULL: limits that cannot be read or a region that
 * cannot be opened refuse every allocation, and a warning says so. */
struct limits_source *limits_source_open(void);

/* Whether limits apply to this process. */
bool limits_source_is_limited(const struct limits_source *source);

/* Looks whether the file has changed, also if it was looked at within the last 17 ms. */
void limits_source_look(struct limits_source *source);

/* The limit of a card at `now`: a change of the file counts within 17 ms. Where the file cannot be read, the last valid
 * content counts; before there is any, the limit is 0. */
struct card_limit limits_source_limit(struct limits_source *source, const uint8_t uuid[UUID_SIZE], uint64_t now);

/* The present policy for allocations within the limit when the card is full. */
enum memory_policy limits_source_memory_policy(struct limits_source *source);

/* The share of a card's time in percent (1 to 99) that this process is limited to on a card it has for itself; 0 = no
 * limit, as under the policies `burst` and `best-effort`, which may use idle time. */
unsigned limits_source_share(struct limits_source *source, const uint8_t uuid[UUID_SIZE]);

/* Whether limits_source_share is not 0 for any card. */
bool limits_source_has_shares(struct limits_source *source);

/* The region, or NULL where it cannot be used: every allocation is then refused. */
struct region *limits_source_region(const struct limits_source *source);

/* Path of the socket to the node's arbiter, or NULL where none is configured. */
const char *limits_source_arbiter_socket(const struct limits_source *source);

/* What the limits say of a group in space now. */
struct space_limits limits_source_space(struct limits_source *source);

/* Maps the region's file without reading limits, for the caller to close; NULL where no region is configured or it
 * cannot be opened. */
struct region *limits_source_open_region(void);

#endif
