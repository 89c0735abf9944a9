/* This process's connection to the node's arbiter for one card (arbitration.h). Whatever the arbiter does, no function
 * blocks except arbiter_link_wait, which has a timeout. */
#ifndef VGPU_COMPUTE_LINK_ARBITER_LINK_H
#define VGPU_COMPUTE_LINK_ARBITER_LINK_H

#include <sys/types.h>

#include "compute/turn/turn_limits.h"
#include "process/mutex.h"
#include "region/region.h"

/* A link of zeros has never tried to connect. */
struct arbiter_link {
    struct mutex mutex; /* LOCK_ARBITER_LINK; guards the fields that are not atomic, and every write to `state` */
    enum { LINK_DISCONNECTED, LINK_CONNECTING, LINK_CONNECTED } state; /* atomic */
    int fd;                                                            /* the socket; valid unless DISCONNECTED */
    ino_t socket_inode;                  /* of `fd`: the program may have closed it and opened another file there */
    uint64_t retry_at;                   /* when to connect again, CLOCK_MONOTONIC in ns */
    const struct arbitration_page *page; /* atomic, set once; a new connection maps its page at the same address */
    uint32_t last_returned;              /* atomic; number of the last turn that was given back, 0 = none */
    uint64_t suitable_turn_ns;           /* atomic; sent with WANT (suitable_turn.h) */
    uint32_t step_us;                    /* atomic; sent with WANT (host_periods_awaited_ns) */
};

/* Advances the connection: connects if that is due, receives the welcome, notices that the arbiter has closed it; then
 * as arbiter_link_contention. Takes LOCK_ARBITER_LINK, unless another thread holds it. */
enum contention arbiter_link_update(struct arbiter_link *link, const uint8_t uuid[UUID_SIZE]);

/* How containers share the card, by the page and the connection's state. Takes no lock. */
enum contention arbiter_link_contention(const struct arbiter_link *link);

/* Whether other containers use the card, as the arbiter last wrote. One load from the page; no check of the heartbeat.
 */
bool arbiter_link_is_contended(const struct arbiter_link *link);

/* Whether the link is connected or connecting, or its last page says that the card is contended. */
bool arbiter_link_is_up(const struct arbiter_link *link);

/* Whether the welcome is still to come. */
bool arbiter_link_is_connecting(const struct arbiter_link *link);

/* The page; NULL if there was never a connection. */
const struct arbitration_page *arbiter_link_page(const struct arbiter_link *link);

/* The number of this process's turn; 0 if it has none, or gave it back already. */
uint32_t arbiter_link_turn(const struct arbiter_link *link);

/* Whether the arbiter asks that turn back, or has ended it. There is a page. */
bool arbiter_link_is_asked_to_yield(const struct arbiter_link *link, uint32_t turn);

/* What the next WANT tells: the longest turns that suit the program (suitable_turn.h), and how long each of its steps
 * is (host_periods_awaited_ns). Takes no lock. */
void arbiter_link_note_steps(struct arbiter_link *link, uint64_t suitable_turn, uint64_t step);

/* Sends WANT. A message that cannot be sent at once is dropped. Takes LOCK_ARBITER_LINK. */
void arbiter_link_want(struct arbiter_link *link);

/* Sends DONE for a turn whose work drains in `ns`, or, if `is_awaited`, DONE_AWAITED. A message that cannot be sent at
 * once is dropped. Takes LOCK_ARBITER_LINK. */
void arbiter_link_done(struct arbiter_link *link, uint32_t turn, uint64_t ns, bool is_awaited);

/* Waits for at most `ns` until the arbiter asks for the turn `turn`, or takes it. There is a page. */
void arbiter_link_await_yield(const struct arbiter_link *link, uint32_t turn, uint64_t ns);

/* Waits until this process has a turn, for at most `ns`. Takes no lock. */
void arbiter_link_wait(const struct arbiter_link *link, uint64_t ns);

/* In a forked child: closes the inherited socket, which is the parent's connection, and forgets everything. */
void arbiter_link_forget(struct arbiter_link *link);

#endif
