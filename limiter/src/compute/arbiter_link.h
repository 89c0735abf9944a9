/* A process's connection to the node's arbiter, about one card (arbitration.h). Whatever the arbiter does or leaves
 * undone, no call waits but arbiter_link_wait, and that for as long as it is told. */
#ifndef VGPU_COMPUTE_ARBITER_LINK_H
#define VGPU_COMPUTE_ARBITER_LINK_H

#include <pthread.h>
#include <sys/types.h>

#include "compute/turn_limits.h"
#include "region/region.h"

/* Zeros are a link that was never tried. The mutex guards the fields but for those said to be atomic. */
struct arbiter_link {
    pthread_mutex_t mutex;
    enum { LINK_DISCONNECTED, LINK_CONNECTING, LINK_CONNECTED } state; /* atomically too */
    int fd;
    ino_t socket_inode;                  /* the socket's: a program may have closed it, and opened another file */
    uint64_t retry_at;                   /* CLOCK_MONOTONIC in ns */
    const struct arbitration_page *page; /* atomically, once: what is mapped there changes with the connection */
    uint32_t last_returned;              /* atomically: the last turn that was given back */
};

/* Connects where that is due, takes the arbiter's welcome, notices that it is gone. How the card stands then. */
enum contention arbiter_link_update(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]);

/* The same as of the last look. */
enum contention arbiter_link_contention(const struct arbiter_link *link);

/* Whether others use the card, by the last word of the arbiter's. One load from memory. */
bool arbiter_link_is_contended(const struct arbiter_link *link);

/* Whether the arbiter is being asked or was found; and whether its first answer is still to come. */
bool arbiter_link_is_up(const struct arbiter_link *link);
bool arbiter_link_is_connecting(const struct arbiter_link *link);

/* The last page; NULL where there never was one. */
const struct arbitration_page *arbiter_link_page(const struct arbiter_link *link);

/* The turn that is this process's, 0 for none. And whether nothing more is to be launched in one that was. */
uint32_t arbiter_link_turn(const struct arbiter_link *link);
bool arbiter_link_is_asked_to_yield(const struct arbiter_link *link, uint32_t turn);

/* Asks for a turn; gives one back that needs the card for `ns` more. */
void arbiter_link_want(struct arbiter_link *link);
void arbiter_link_done(struct arbiter_link *link, uint32_t turn, uint64_t ns);

/* Until there is a turn, or the time is up. */
void arbiter_link_wait(const struct arbiter_link *link, uint64_t ns);

/* In a forked child: the connection is its parent's. */
void arbiter_link_forget(struct arbiter_link *link);

#endif
