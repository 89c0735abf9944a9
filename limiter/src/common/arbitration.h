/* The protocol between the limiter, in a process of a container, and vgpu-arbiter, which schedules turns on the cards
 * of a node. Both are built from this file but installed separately, so the protocol carries a version.
 *
 * Connection. A client is one process on one card. For each card it opens a SOCK_SEQPACKET connection to the socket of
 * its container and sends a hello. The socket tells the arbiter which container the client belongs to; of what a
 * client says about itself only its abilities are used. The arbiter answers with a welcome. If it accepts, the welcome
 * carries the descriptor of the client's page: a memfd, sealed against shrinking, which only the arbiter can write.
 *
 * Messages. From then on the client sends messages (WANT, DONE, DONE_AWAITED) through the socket. The arbiter answers
 * by writing the page and waking the futex in it, never through the socket. Closing the connection gives up the
 * client's turn.
 *
 * Rules for the client:
 * - While `contended` is 0, the client launches without turns. A WANT is then granted at once, by a turn without limits
 *   that becomes void (`turn` is 0 again) when another container begins to use the card.
 * - If no client of a container has asked for or held a turn for two seconds, they all read `contended` = 1 as long as
 *   another container is connected to the card, because that container may begin to launch at any time. The first of
 *   them that launches again sends WANT before.
 * - A client that has more to launch at the end of its turn sends the next WANT directly after DONE and does not wait
 *   for its work to drain. Otherwise the arbiter would give the next turn to a waiting client with a weaker claim.
 * - While `joint` is 1, clients of other containers hold turns at the same moment. The turn has no budget and is held
 *   until it is asked back or taken, also while nothing is launched. Times between events then contain the time slices
 *   of the others, so they measure nothing.
 * - A client whose requests arrive periodically may get its turn shortly before it asks. It sends WANT nevertheless,
 *   because the arbiter learns the time of the arrival from that message.
 *
 * Jobs. While `job` is not 0, the cards that the container has linked (region/linked_cards.h) have their turns at the
 * same moment, whether each of them was asked for or not. Asked to yield, a client ends its launches at the same point
 * of the program as on the other cards, and sends DONE when the work has drained, not before: kernels of a collective
 * spin, and when they end is not known before. While `job_spans` is 1, cards of the job are in other containers, which
 * have regions of their own: the arbiter reads these, and writes `job_batches` and `job_awaited`.
 *
 * Groups in space. Clients whose hello says ARBITRATION_IN_SPACE, in containers whose limits name one group, are one
 * tenant and hold its turns together. Any other client of such a container takes turns by itself. A client that says so
 * wrongly takes time from its group only.
 *
 * Trust. No content of a page makes a client crash or wait without a bound. No message of a client, and no missing one,
 * lets the client keep a card: the arbiter ends turns by its own clock.
 */
#ifndef VGPU_COMMON_ARBITRATION_H
#define VGPU_COMMON_ARBITRATION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ARBITRATION_MAGIC   "VGPUTURN"
#define ARBITRATION_VERSION 1

/* Heartbeat timeout. If `heartbeat_at` is older than this, the clients of a contended card go on without the arbiter.
 * The arbiter writes `heartbeat_at` every 20 ms while a client waits or more than one container is connected to the
 * card. */
#define ARBITRATION_HEARTBEAT_TIMEOUT_NS 60000000ULL

/* The holder of a turn writes `busy_until` in the card's row of its container's region: the time at which the
 * launched work is expected to drain, plus this grace. The arbiter reads it to see whether the card is idle. While a
 * thread of the holder waits for the work, `awaited_until` says how much longer than expected the work may take. */
#define ARBITRATION_BUSY_GRACE_NS 1000000ULL

/* The longest kernel that runs to its end while other containers wait, if its container's guarantee pays for it: 3 s,
 * and some for one that takes longer than estimated. One that takes longer is cut off as an overrun. */
#define ARBITRATION_LONG_KERNEL_NS 4000000000ULL

/* Lead time of a grant: the arbiter gives the next turn this long before the card is expected to be free, because the
 * first launch of the next holder needs about as long to reach the card. */
#define ARBITRATION_GRANT_LEAD_NS 150000ULL

/* The longest time for which the card may stay idle before an expected arrival: a turn ends up to this long before
 * `end_by` if its next kernel would end after `end_by`. */
#define ARBITRATION_IDLE_BEFORE_ARRIVAL_MAX_NS 400000ULL

/* What a client can do, as bits of its hello. */
enum arbitration_ability {
    ARBITRATION_JOINS = 1,    /* it knows turns that are held jointly */
    ARBITRATION_IN_SPACE = 2, /* its process is a client of the MPS server of its container's group in space */
};

struct arbitration_hello {
    char magic[8];
    uint32_t version;
    uint32_t abilities; /* enum arbitration_ability; unknown bits are ignored */
    uint8_t uuid[16];   /* the card that the client wants to use */
};

enum arbitration_result {
    ARBITRATION_ACCEPTED,
    ARBITRATION_OTHER_VERSION, /* the hello's version is not the arbiter's */
    ARBITRATION_NO_SUCH_CARD,  /* the container's limits file does not name the card */
    ARBITRATION_TOO_MANY, /* a table of the arbiter's is full (clients, containers, cards), or no page can be made */
};

struct arbitration_welcome {
    char magic[8];
    uint32_t version;
    uint32_t result; /* enum arbitration_result; ACCEPTED carries the page's descriptor (SCM_RIGHTS) */
};

enum arbitration_kind {
    ARBITRATION_WANT = 1, /* asks for a turn; has no further effect while the client waits */
    ARBITRATION_DONE = 2, /* ends a turn: the client launches no more in it, and its launched work is expected to drain
                             in `ns`. May be sent again for the turn if the work drains earlier than announced */
    ARBITRATION_DONE_AWAITED = 3, /* as DONE; the client waits for the work, and sends DONE as soon as it has drained */
};

struct arbitration_message {
    uint32_t kind; /* enum arbitration_kind */
    union {
        uint32_t turn;    /* DONE, DONE_AWAITED: the number of the turn */
        uint32_t step_us; /* WANT: GPU time in us of each of the program's steps, which it launches at once and waits
                             for; 0 = they differ, or are not known */
    };
    uint64_t
        ns; /* DONE: see there; WANT: the longest turns, of any container, that suit the program's steps; 0 = any */
};

/* A client's page. Every field is atomic. The arbiter writes it, `turn` last and with release order, so that a client
 * that reads a new `turn` with acquire order sees the limits that belong to it. The client maps the page read-only. */
struct arbitration_page {
    uint32_t turn;         /* futex; the number of the client's turn, 0 = it has none. Numbers are not reused. */
    uint32_t yield_turn;   /* the number of the turn that the arbiter asks back: no more launches in it */
    uint64_t budget_ns;    /* GPU time that the turn may use; UINT64_MAX: no bound until the arbiter asks it back */
    uint64_t depth_ns;     /* GPU time that may be in flight at once; UINT64_MAX: no bound */
    uint64_t heartbeat_at; /* heartbeat: when the arbiter last wrote it, CLOCK_MONOTONIC in ns */
    uint32_t contended;    /* 1: launches need turns; 0: no other container uses the card */
    uint32_t
        fallback_percent; /* percent of the card's time for this container while there is no heartbeat; 100: no limit */
    uint64_t free_at; /* when the turn's first kernel can begin, CLOCK_MONOTONIC in ns: the work of the previous turn is
                         expected to have drained, and the handover to be over */
    uint64_t end_by;  /* when another client is expected to arrive, CLOCK_MONOTONIC in ns: the turn ends as close to
                        this time as its kernels allow; 0 = no bound */
    uint32_t joint;   /* 1: others hold turns at the same moment */
    uint32_t job; /* 0: the card's turns are given for themselves. Otherwise the container has linked cards that have
                     their turns at the same moment: the number of the last of these, the same on all of them */
    uint32_t job_spans;   /* 1: some of these cards are in other containers */
    uint32_t job_batches; /* the most batches that one of those has had in the turn `job`, since that is asked back */
    uint32_t job_awaited; /* 1: one of those has work that should have ended, and that a thread waits for: a kernel of
                             it may spin until this client launches */
    uint32_t reserved;
};

static_assert(sizeof(struct arbitration_hello) == 32, "layout");
static_assert(sizeof(struct arbitration_welcome) == 16, "layout");
static_assert(sizeof(struct arbitration_message) == 16, "layout");
static_assert(sizeof(struct arbitration_page) == 80, "layout");
static_assert(offsetof(struct arbitration_page, budget_ns) == 8, "layout");
static_assert(offsetof(struct arbitration_page, contended) == 32, "layout");
static_assert(offsetof(struct arbitration_page, job) == 60, "layout");
static_assert(offsetof(struct arbitration_page, job_spans) == 64, "layout");

#endif
