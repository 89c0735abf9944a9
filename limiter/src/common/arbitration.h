/* What a process and the node's arbiter say to each other about turns on a card. The limiter and limiter/arbiter share
 * it; both ends are built together and installed apart, so it carries a version.
 *
 * A client is one process on one card: a SOCK_SEQPACKET connection of its own to its container's socket (which
 * container it is, the socket says). It sends a hello; the arbiter answers with a welcome and, where it accepts, the
 * descriptor of the client's page, a memfd sealed against shrinking, which the arbiter alone can write. From then on
 * the client sends messages, and the arbiter answers by writing the page and waking the futex in it, never through the
 * socket. A connection that ends gives up its turn.
 *
 * One that asks at regular moments may find its turn given just before: it asks all the same, for so the arbiter knows
 * that it came.
 *
 * A client whose page says that nobody contends with it launches as it likes. Where it asks all the same it is answered
 * at once, by a turn that binds nobody and is worth nothing once somebody contends: `turn` is 0 again then. A client
 * that did nothing for two seconds reads that it is contended, for it may not be alone when it begins again: it asks.
 * One that has more to launch when its turn ends asks for the next one at once, not when its work has drained: else the
 * next in line, who may have less of a claim, is served.
 *
 * Nothing in a page can hurt its client, and nothing that a client sends or leaves unsaid can hurt others: a turn ends
 * by the arbiter's own clock.
 */
#ifndef VGPU_COMMON_ARBITRATION_H
#define VGPU_COMMON_ARBITRATION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ARBITRATION_MAGIC   "VGPUTURN"
#define ARBITRATION_VERSION 1

/* An arbiter that has not written `beat` for so long, and was asked or has more than one container on the card, is
 * away: its clients go on by themselves. It writes it every 20 ms then. */
#define ARBITRATION_AWAY_NS 60000000ULL

/* A holder writes `leased_until` of its card's row in the region: when what it launched is expected to be done, and
 * this much. */
#define ARBITRATION_GRACE_NS 1000000ULL

/* The next turn is given so long before the card falls free, for its work needs that to get there. */
#define ARBITRATION_EARLY_NS 300000ULL

/* A turn that is to end at a moment ends so much before it at most, where the next kernel would end after it. */
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
    ARBITRATION_NO_SUCH_CARD, /* the container's limits do not name it */
    ARBITRATION_TOO_MANY,     /* clients, of this container or in all */
};

struct arbitration_welcome {
    char magic[8];
    uint32_t version;
    uint32_t result; /* accepted: the page's descriptor comes with it (SCM_RIGHTS) */
};

enum arbitration_kind {
    ARBITRATION_WANT = 1, /* a turn, please; asked again: still */
    ARBITRATION_DONE = 2, /* launches no more in its turn; what it launched is done in `ns`. Again: sooner than that */
};

struct arbitration_message {
    uint32_t kind;
    uint32_t turn; /* DONE: which */
    uint64_t ns;
};

/* Written by the arbiter, each field atomically, `turn` last; the client maps it read-only. */
struct arbitration_page {
    uint32_t turn;      /* a futex: the number of the turn that the client has, 0 = none. Numbers never come again. */
    uint32_t yield;     /* the number of the turn that is to end soon: nothing more is to be launched in it */
    uint64_t budget_ns; /* GPU time that the turn may take; UINT64_MAX: until it is asked to yield */
    uint64_t depth_ns;  /* so much of it may be in flight; UINT64_MAX: any */
    uint64_t beat;      /* CLOCK_MONOTONIC in ns */
    uint32_t contended; /* 0: no other container uses the card, and no turn is needed */
    uint32_t fallback;  /* percent of the card that this container may take while the arbiter is away; 100: any */
    uint64_t free_at; /* CLOCK_MONOTONIC in ns: when the turn's work can begin, for what was before it is expected to be
                         done then, and the card handed over */
    uint64_t until;   /* CLOCK_MONOTONIC in ns: when another one is expected, and the turn to end as nearly as kernels
                         allow; 0 = nobody is */
    uint8_t reserved[8];
};

static_assert(sizeof(struct arbitration_hello) == 32, "layout");
static_assert(sizeof(struct arbitration_welcome) == 16, "layout");
static_assert(sizeof(struct arbitration_message) == 16, "layout");
static_assert(sizeof(struct arbitration_page) == 64, "layout");
static_assert(offsetof(struct arbitration_page, budget_ns) == 8, "layout");
static_assert(offsetof(struct arbitration_page, contended) == 32, "layout");

#endif
