/* The bytes of a region: what the processes of one container share. Mirrored by vgpu/region.py.
 *
 * Fixed width, no pointers, little-endian. The node's agent and the arbiter read it from outside without the lock, and
 * believe nothing.
 */
#ifndef VGPU_COMMON_REGION_LAYOUT_H
#define VGPU_COMMON_REGION_LAYOUT_H

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/gpu_uuid.h"

#define REGION_MAGIC        "VGPUREGN"
#define REGION_VERSION      1
#define REGION_CARDS        32
#define REGION_SLOTS        1024
#define REGION_WINDOWS      2
#define REGION_POOL_EXPORTS 512
#define UUID_SIZE           16
#define UNLIMITED           UINT64_MAX

/* Who a process is: a pid alone comes back. */
struct identity {
    uint32_t pid;        /* in its own pid namespace */
    uint64_t start_time; /* field 22 of /proc/<pid>/stat */
    uint64_t namespace;  /* inode of /proc/self/ns/pid */
};

struct region_header {
    char magic[8];       /* the creator, once */
    uint32_t version;    /* the creator, once */
    uint32_t size;       /* the creator, once: of the whole region */
    uint32_t slot_count; /* the creator, once */
    uint32_t card_count; /* the creator, once */
    uint32_t lock_ready; /* the first process, under flock: the lock is initialised */
    uint32_t slots_high; /* under the lock: one past the highest slot ever taken */
    uint64_t recoveries; /* under the lock: holders that died */
    uint64_t reaped;     /* under the lock: slots of dead processes that were cleared */
    uint64_t timeouts;   /* anybody, atomically: waits for the lock that were given up */
    union {
        pthread_mutex_t mutex; /* process-shared, robust */
        uint8_t room[64];
    } lock;
    uint8_t reserved[136];
};

/* GPU time over a while: 1 s, or 10 s, and what lies between two charges. Under the lock. */
struct region_window {
    uint64_t begun;    /* 0 = never */
    uint64_t gpu_ns;   /* of the card, then */
    uint32_t permille; /* the card's share of time in the last full one */
    uint32_t took_ms;  /* how long that was; 0 = there was none */
};

struct region_card {
    uint8_t uuid[UUID_SIZE]; /* under the lock, once */
    uint64_t used;           /* under the lock: the sum over the slots, and `orphaned` */
    uint64_t limit;          /* under the lock: what the last reservation was held to */
    uint64_t peak;           /* under the lock */
    uint64_t refusals;       /* anybody, atomically: the lock may be why */
    uint32_t taken;          /* under the lock, last: the row is valid */
    uint32_t reserved0;
    uint64_t context;  /* under the lock: what a context took when one was last made, 0 = not known */
    uint64_t orphaned; /* under the lock: what is in no slot, by the shares */
    uint8_t reserved[40];
    uint64_t spilled; /* under the lock: bytes ever served from managed memory, for the card was full */
    uint64_t spills;  /* under the lock: and in how many allocations */
    /* Compute: times in ns of CLOCK_MONOTONIC, under the lock but for those said to be anybody's. */
    int64_t tokens;           /* GPU time that may be used; below 0: owed */
    uint64_t refilled_at;     /* 0 = never */
    uint64_t charged_until;   /* up to when GPU time has been charged */
    uint64_t leased_until;    /* the holder, atomically: then it may be passed over */
    uint32_t holder;          /* whose turn it is: 0 = nobody's, else the slot + 2, 1 = of a process without a slot */
    uint32_t turns;           /* a futex: grows at each turn's end */
    uint64_t gpu_ns;          /* GPU time used */
    uint64_t throttled_ns;    /* anybody, atomically: what launches have waited */
    uint32_t delayed;         /* anybody, atomically: launches that waited */
    uint32_t longest_wait_us; /* anybody, atomically */
    uint32_t tickets;         /* given out so far to processes that wait for a turn */
    uint32_t served;          /* the last one that had its turn, or did not come for it */
    uint64_t free_since;      /* since when its successor is waited for, 0 = it is not */
    struct region_window windows[REGION_WINDOWS];
};

struct region_slot {
    uint32_t pid; /* under the lock; 0 = free */
    uint32_t reserved0;
    uint64_t start_time;
    uint64_t namespace;
    uint64_t calls; /* the owner, atomically: begun so far in the high half, under way in the low one */
    uint8_t reserved[32];
    uint64_t used[REGION_CARDS]; /* under the lock, by the owner or who measures it or clears the dead owner's slot */
    uint64_t managed[REGION_CARDS]; /* under the lock, by the owner: of it, what NVML does not count */
    uint32_t settled[REGION_CARDS]; /* under the lock: how often a measurement said otherwise than what was charged */
};

enum pool_export_role { POOL_EXPORT_FREE, POOL_EXPORTER, POOL_IMPORTER };

/* A pool's pointer that was exported to other processes, or imported by one (shares.h). Under the lock. */
struct region_pool_export {
    uint64_t key;   /* tells the pointer, whoever has it */
    uint64_t group; /* of pointers that lie in the same memory */
    uint64_t bytes; /* of that memory */
    uint64_t pool;  /* the process's own name for it */
    uint32_t card;  /* the row */
    uint32_t slot;  /* the process */
    uint32_t kind;  /* last; of enum pool_export_role */
    uint32_t reserved;
};

struct region {
    struct region_header header;
    struct region_card cards[REGION_CARDS];
    struct region_slot slots[REGION_SLOTS];
    struct region_pool_export shares[REGION_POOL_EXPORTS];
};

static_assert(sizeof(struct region_header) == 256, "layout");
static_assert(offsetof(struct region_header, recoveries) == 32, "layout");
static_assert(offsetof(struct region_header, lock) == 56, "layout");
static_assert(sizeof(struct region_card) == 256, "layout");
static_assert(offsetof(struct region_card, taken) == 48, "layout");
static_assert(sizeof(struct region_slot) == 704, "layout");
static_assert(offsetof(struct region_card, context) == 56, "layout");
static_assert(offsetof(struct region_card, orphaned) == 64, "layout");
static_assert(offsetof(struct region_card, spilled) == 112, "layout");
static_assert(offsetof(struct region_card, tokens) == 128, "layout");
static_assert(offsetof(struct region_card, gpu_ns) == 168, "layout");
static_assert(offsetof(struct region_card, windows) == 208, "layout");
static_assert(sizeof(struct region_window) == 24, "layout");
static_assert(offsetof(struct region_slot, calls) == 24, "layout");
static_assert(offsetof(struct region_slot, used) == 64, "layout");
static_assert(offsetof(struct region_slot, managed) == 320, "layout");
static_assert(offsetof(struct region_slot, settled) == 576, "layout");
static_assert(sizeof(struct region_pool_export) == 48, "layout");
static_assert(offsetof(struct region, slots) == 8448, "layout");
static_assert(offsetof(struct region, shares) == 729344, "layout");

#endif
