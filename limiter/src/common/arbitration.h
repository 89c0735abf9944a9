/* Wire protocol between a process and the node's arbiter about turns on a card. The library (compute/) and
 * limiter/arbiter include this file; they are built together but installed apart, so the messages carry a version.
 *
 * Connection. A client is one process on one card. It connects to its container's SOCK_SEQPACKET socket (the socket
 * tells the arbiter which container it is) and sends `arbitration_hello`. The arbiter replies with
 * `arbitration_welcome` and, if it accepts, with the descriptor of the client's page: a memfd that only the arbiter can
 * write and that is sealed against shrinking. After that the client sends `arbitration_message`s, and the arbiter
 * answers only by writing the page and waking the futex in it. Closing the connection gives up the client's turn.
 *
 * Turns. A client whose page says `contended` = 0 launches without a turn. If it requests a turn anyway, the arbiter
 * grants it immediately; such a turn is void, and `turn` is 0 again, once the card becomes contended. A client that was
 * idle for two seconds reads `contended` = 1 and must request a turn, because another client may begin at the same
 * moment. A client that has more to launch when its turn ends requests the next turn immediately, not after its work
 * has drained: otherwise the arbiter grants the card to another waiting client, which may rank lower. The arbiter may
 * grant a turn just before the request of a client that comes at regular intervals (docs/adr/0019). That client sends
 * its request nevertheless, which confirms the prediction.
 *
 * Trust. The client bounds every value that it reads from the page (compute/turn_limits.c). The arbiter ends turns by
 * its own clock, so that a client's false or missing messages do not delay other clients. */
#ifndef VGPU_COMMON_ARBITRATION_H
#define VGPU_COMMON_ARBITRATION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ARBITRATION_MAGIC   "VGPUTURN"
#define ARBITRATION_VERSION 1

/* Heartbeat timeout: a client that sees no newer `beat` for this long continues without the arbiter. The arbiter
 * writes `beat` every 20 ms while clients of several containers are connected or a client waits for a turn. */
#define ARBITRATION_AWAY_NS 60000000ULL

/* Margin that is added to the expected end of launched work in `leased_until` of the region's card row. */
#define ARBITRATION_GRACE_NS 1000000ULL

/* The arbiter grants the next turn this long before the card is expected to be free: the time that the next client's
 * first launch needs to reach the card. */
#define ARBITRATION_EARLY_NS 300000ULL

/* A turn with an end time (`until`) may end at most this long before it, if the next kernel would end after it. */
#define ARBITRATION_KEPT_NS 400000ULL

struct arbitration_hello {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    uint8_t uuid[16]; /* of the card */
};

enum arbitration_result {
    ARBITRATION_ACCEPTED,
    ARBITRATION_OTHER_VERSION,
    ARBITRATION_NO_SUCH_CARD, /* the container's limits do not name the card */
    ARBITRATION_TOO_MANY,     /* the container or the arbiter has no room for another client */
};

struct arbitration_welcome {
    char magic[8];
    uint32_t version;
    uint32_t result; /* enum arbitration_result; ACCEPTED comes with the page's descriptor (SCM_RIGHTS) */
};

enum arbitration_kind {
    ARBITRATION_WANT = 1, /* requests a turn; idempotent while the client waits */
    ARBITRATION_DONE = 2, /* nothing more is launched in `turn`, and its work ends in `ns`; sent a second time, it
                             corrects `ns` to an earlier end */
};

struct arbitration_message {
    uint32_t kind; /* enum arbitration_kind */
    uint32_t turn; /* of DONE: the turn's number */
    uint64_t ns;   /* of DONE: time until the launched work is expected to end */
};

/* A client's page. The arbiter writes each field with an atomic store, `turn` last; the client maps it read-only. */
struct arbitration_page {
    uint32_t turn;      /* futex word: number of the client's turn, 0 = none; numbers are never reused */
    uint32_t yield;     /* number of a turn that the arbiter calls back: the client launches nothing more in it */
    uint64_t budget_ns; /* GPU time that the turn may take; UINT64_MAX: unbounded until it is called back */
    uint64_t depth_ns;  /* the most GPU time that may be in flight at once; UINT64_MAX: unbounded */
    uint64_t beat;      /* heartbeat: when the arbiter last wrote this, CLOCK_MONOTONIC in ns */
    uint32_t contended; /* 0: no other container uses the card, so launches need no turn */
    uint32_t fallback;  /* percent of the card that the container may take without a heartbeat; 100: no limit */
    uint64_t free_at;   /* CLOCK_MONOTONIC in ns: when earlier work is expected to be done and the card handed over */
    uint64_t until;     /* CLOCK_MONOTONIC in ns: when another client is expected; the turn ends as close to it as
                           kernel lengths allow; 0 = nobody is expected */
    uint8_t reserved[8];
};

static_assert(sizeof(struct arbitration_hello) == 32, "layout");
static_assert(sizeof(struct arbitration_welcome) == 16, "layout");
static_assert(sizeof(struct arbitration_message) == 16, "layout");
static_assert(sizeof(struct arbitration_page) == 64, "layout");
static_assert(offsetof(struct arbitration_page, budget_ns) == 8, "layout");
static_assert(offsetof(struct arbitration_page, contended) == 32, "layout");

#endif
