/* One container: its directory with the files `limits`, `region` and `arbiter/socket`, and the cards that it uses. The
 * host writes `limits`; the container can write `region`, so nothing in that file is trusted. */
#ifndef VGPU_ARBITER_CONTAINER_CONTAINER_H
#define VGPU_ARBITER_CONTAINER_CONTAINER_H

#include <limits.h>
#include <sys/types.h>

#include "arbiter/connection/event_loop.h"
#include "arbiter/connection/rate_limit.h"
#include "arbiter/tenant/demand.h"
#include "common/limits.h"

struct card_board;

/* A container on one card. One of a group in space may have two: as a member of its group, and by itself. */
struct tenancy {
    struct container *container; /* whose it is */
    struct card_board *board;    /* NULL: the entry is free */
    int tenant;                  /* index on the board */
    unsigned region_row;         /* where the card's row in the region was last found */
    bool is_member;              /* the tenant is the group in space `group` */
    uint8_t group[SPACE_GROUP_SIZE];
    struct tenancy *next; /* of the same tenant: of the group's next member. NULL: there is no other */
};

struct container {
    struct event_source listener; /* the listening socket, fd -1 = none. First, so that a listener is a container */
    bool is_taken;                /* the entry is in use */
    bool is_seen;                 /* by the scan of the directory that is under way */
    char name[NAME_MAX + 1];      /* of its directory */
    int directory_fd;
    ino_t directory_inode;  /* tells a new directory from a former one of that name */
    ino_t listener_inode;   /* of the socket file that belongs to `listener` */
    int region_fd;          /* -1: there is none */
    int connections;        /* open */
    int accepted_clients;   /* connections that have completed the handshake */
    int accepts_left;       /* connections that may be accepted until the next containers_refresh */
    struct rate_limit rate; /* of the messages of all its processes */
    struct limits_slot limits;
    bool is_bounded;     /* it is of a job of several containers: */
    struct demand bound; /* the lowest demand of these, which counts for each of them */
    struct tenancy tenancies[LIMITS_CARDS];
};

/* Opens the directory `name` below `parent_fd` and reads its limits. Creates no socket yet (container_ensure_listener).
 * False if it is not a directory that can be opened. */
bool container_open(struct container *container, int parent_fd, const char *name);

/* Whether the name still stands for the directory that was opened. */
bool container_is_same(const struct container *container, int parent_fd);

/* Creates the listening socket if there is none or its file was removed; `on_connection` is called for each connection.
 * Without a directory `arbiter` there is no socket: `listener.fd` is -1 then. */
void container_ensure_listener(struct container *container, void (*on_connection)(struct event_source *listener));

/* Reads the limits file. Keeps the last valid limits if it cannot be read. */
void container_read_limits(struct container *container);

/* Opens the region again: a process that connects now uses the file that is there now. */
void container_open_region(struct container *container);

/* What the container's region says of a card; 0 if it has no row of the card. The container can write it, so it is not
 * trusted. */
struct container_use {
    uint64_t busy_until, awaited_until; /* the card's row; CLOCK_MONOTONIC in ns */
    uint64_t gpu_ns, throttled_ns;      /* likewise */
    bool is_waiting;                    /* `busy_until` is the end of no work */
};

/* The container's use of a card. `cached_row` is where the card's row was found last, and is updated. */
struct container_use container_use(const struct container *container, const uint8_t uuid[UUID_SIZE],
                                   unsigned *cached_row);

/* How long, in ns, the container's threads have waited so far for the work of the card whose row is `row`. Not trusted.
 */
uint64_t container_synchronize_ns(const struct container *container, unsigned row);

/* What the container's region says of the last turn of a job on the card whose row is `row`. Not trusted. */
struct container_window {
    uint32_t number;  /* of the job's turn */
    uint32_t batches; /* that the card has had in it */
    bool is_at_work;  /* work of the card has not been charged */
    bool is_late;     /* a thread waits for work of the card, which should have ended */
};

struct container_window container_window(const struct container *container, unsigned row, uint64_t now);

/* The ns until the container has repaid what it has used beyond its fixed share of the card, a minute at most; 0 too if
 * it has no such share. `row`: of the card. Not trusted. */
uint64_t container_debt(const struct container *container, const uint8_t uuid[UUID_SIZE], unsigned row, uint64_t now);

/* Sets of linked cards that a container can have. */
enum { CONTAINER_LINKED_SETS = LIMITS_CARDS / 2 };

/* The sets of cards that the container's processes have linked, by the rows of its region, one bit for each; their
 * number. Each has two cards at least, and no card of another one. Not trusted. */
unsigned container_linked_sets(const struct container *container, uint32_t sets[CONTAINER_LINKED_SETS]);

/* Removes the container's socket, and closes its files. Its connections and its tenancies have ended before. */
void container_close(struct container *container);

#endif
