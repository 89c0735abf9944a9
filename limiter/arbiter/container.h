/* One container: its directory, the limits in it, the region, and the door that its processes come through. */
#ifndef VGPU_ARBITER_CONTAINER_H
#define VGPU_ARBITER_CONTAINER_H

#include <limits.h>
#include <sys/types.h>

#include "common/limits.h"
#include "event_loop.h"
#include "rate_limit.h"

struct card_board;

/* The container on one card. */
struct tenancy {
    struct card_board *board; /* NULL: none */
    int tenant;
    unsigned region_row; /* of the card in the region, when it was last found */
};

struct container {
    struct event_source listener; /* first: what is ready is the container's door */
    bool is_taken;
    bool is_seen; /* by the scan that is under way */
    char name[NAME_MAX + 1];
    int directory_fd;
    ino_t directory_inode; /* of the folder, for a name may come again */
    ino_t listener_inode;
    int region_fd;
    int connections;
    int accepted_clients;   /* of them, that have said hello and were accepted */
    int accepts_left;       /* that may still be made until the next tick */
    struct rate_limit rate; /* of its processes' messages together */
    struct limits_slot limits;
    struct tenancy tenancies[LIMITS_CARDS];
};

/* Opens what is there; the door is made when there is a directory for it. False where that is no container's. */
bool container_open(struct container *container, int parent_fd, const char *name);

/* Whether the name still means the same directory. */
bool container_is_same(const struct container *container, int parent_fd);

/* Makes the door, or makes it anew where its socket is gone. */
void container_ensure_listener(struct container *container, void (*on_connection)(struct event_source *listener));

/* Brings the limits up to date. */
void container_read_limits(struct container *container);

/* The region that a process which is connecting now will use. */
void container_open_region(struct container *container);

/* `leased_until` of a card, as the region says, which says anything; 0 where it says nothing. */
uint64_t container_leased_until(const struct container *container, const uint8_t uuid[UUID_SIZE], unsigned *cached_row);

/* The seat on a board, taken where there is none; NULL where there are too many, or the limits do not name the card. */
struct tenancy *container_tenancy(struct container *container, struct card_board *board, uint64_t now);

/* Closes all but the connections. */
void container_close(struct container *container);

#endif
