/* Layout of a region: the shared memory file of a container's processes. Mirrored by vgpu/domain/formats/region.py.
 *
 * Little-endian, fixed-width integers, no pointers. The node's agent and the arbiter read a region from outside,
 * without its lock, and validate what they read, because the container's processes can write anything into it.
 *
 * "Locked" in the comments below means: written by the process that holds `header.lock` (LOCK_REGION). Where a
 * locked field is also read without the lock, it is stored atomically, so that no reader sees half of a number.
 * "Atomic" means: written without the lock, by atomic operations. Times are CLOCK_MONOTONIC in ns. */
#ifndef VGPU_COMMON_REGION_LAYOUT_H
#define VGPU_COMMON_REGION_LAYOUT_H

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/gpu_uuid.h"

#define REGION_MAGIC          "VGPUREGN"
#define REGION_VERSION        3
#define REGION_CARDS          32
#define REGION_SLOTS          1024
#define REGION_WINDOWS        2
#define REGION_POOL_EXPORTS   512
#define REGION_MEMORY_EXPORTS 4096

/* Identifies a process: a pid alone may be reused. */
struct identity {
    uint32_t pid;        /* in its own pid namespace */
    uint64_t start_time; /* field 22 of /proc/<pid>/stat, in clock ticks since boot; a random number without /proc */
    uint64_t namespace;  /* inode of /proc/self/ns/pid; 0 = unknown, which is equal to no other */
};

struct region_header {
    char magic[8];       /* written once, by the region's creator */
    uint32_t version;    /* written once, by the region's creator */
    uint32_t size;       /* bytes of the whole region; written once, by the region's creator */
    uint32_t slot_count; /* REGION_SLOTS; written once, by the region's creator */
    uint32_t card_count; /* REGION_CARDS; written once, by the region's creator */
    uint32_t lock_ready; /* 1: `lock` is initialised; set once, by the first process, under flock() on the file */
    uint32_t slots_high; /* locked: one past the highest slot in use */
    uint64_t recoveries; /* locked: how often the lock's holder had died */
    uint64_t reaped;     /* locked: slots of dead processes that were cleared */
    uint64_t timeouts;   /* atomic: how often a process gave up waiting for the lock */
    union {
        pthread_mutex_t mutex; /* process-shared and robust */
        uint8_t room[64];
    } lock;
    uint64_t fault_client_since; /* atomic: since when the process at `fault_seen_at` was a client of its group's MPS
                                    server */
    uint64_t fault_seen_at; /* atomic, written last: when a client of a group's MPS server last saw that its contexts
                               are lost by a fault; 0 = never (hooks/programs/space_fault.h) */
    uint8_t reserved[120];
};

/* GPU time used over a window, which is closed by the first charge after its length (1 s or 10 s). Locked. */
struct region_window {
    uint64_t begun;    /* when the open window began; 0 = no charge yet */
    uint64_t gpu_ns;   /* `gpu_ns` of the card when the open window began */
    uint32_t permille; /* share of the card's time that was used in the last closed window */
    uint32_t took_ms;  /* length of the last closed window; 0 = none was closed yet */
};

/* The account of one card. */
struct region_card {
    uint8_t uuid[UUID_SIZE]; /* locked, written once, before `is_valid` */
    uint64_t used;           /* locked: bytes charged: the sum of the slots' `used`, and `orphaned` */
    uint64_t limit;          /* locked: limit in bytes that the last reservation was compared with */
    uint64_t peak;           /* locked: highest value of `used` */
    uint64_t refusals;       /* atomic, because a lock that cannot be had is a reason to refuse: allocations refused */
    uint32_t is_valid;       /* locked, stored last, with release order: 1 = the row is valid */
    uint32_t is_waiting; /* atomic: 1 = the holder waits for the card's turn, so `busy_until` is the end of no work */
    uint64_t context_bytes; /* locked: bytes that the last creation of a context took; 0 = unknown */
    uint64_t orphaned;      /* locked: bytes of exported memory whose exporter has ended (region/pool_exports.h,
                               region/memory_exports.h) */
    uint64_t awaited_until; /* atomic: 0, or a thread of the holder waits for the card's work, which may take until then
                               although it should be over by `busy_until` */
    uint64_t kept_tokens;   /* locked: tokens beyond the burst cap that were earned during a long wait for a turn */
    uint64_t kept_max;      /* locked: the most of them: what the longest of these waits earned */
    int64_t overdraft_used; /* locked: GPU time in ns that was lent before the share pays for it and has not come back
                               (region/overdraft.h); 0 = all may be lent */
    uint64_t overdraft_at;  /* locked: when `overdraft_used` was last brought up to date */
    uint64_t spilled;       /* locked: bytes served so far from managed memory because the card was full */
    uint64_t spills;        /* locked: number of allocations that `spilled` sums up */

    /* Compute time (region/token_bucket.h). */
    int64_t tokens;         /* locked: GPU time in ns that may be used now; negative: debt */
    uint64_t refilled_at;   /* locked: when `tokens` was last refilled; 0 = never */
    uint64_t charged_until; /* locked: when GPU time was last charged */
    uint64_t busy_until;   /* atomic: when the holder's work is expected to end, with a margin; then another process may
                                take the turn. The arbiter reads it as use of the card */
    uint32_t holder;       /* locked: whose turn it is: slot + 2; 1 = a process without a slot; 0 = nobody's */
    uint32_t turns_ended;  /* locked, a futex word: incremented at the end of each turn */
    uint64_t gpu_ns;       /* locked: GPU time used so far */
    uint64_t throttled_ns; /* atomic: sum of the times that launches waited */
    uint32_t delayed_launches; /* atomic: number of launches that waited */
    uint32_t longest_wait_us;  /* atomic: longest wait of a launch */
    uint32_t tickets;          /* locked: last ticket number that was drawn; waiting processes queue by number */
    uint32_t served;           /* locked: last ticket number that was served or skipped */
    uint64_t free_since; /* locked: since when the turn has been free for ticket `served` + 1; 0 = it is not free */
    struct region_window windows[REGION_WINDOWS]; /* of 1 s and of 10 s */
};

/* The account of one process. */
struct region_slot {
    uint32_t pid;        /* locked, stored last, with release order; 0 = the slot is free */
    uint32_t is_locked;  /* locked: 1 = the owner holds the slot's file lock while it lives (region/slot_locks.h) */
    uint64_t start_time; /* locked: see struct identity */
    uint64_t namespace;  /* locked: see struct identity */
    uint64_t calls;      /* atomic, by the owner: calls begun so far (high 32 bits), calls under way (low 32 bits) */
    uint32_t is_frozen;  /* atomic: 1 = the process is locked for a checkpoint, so NVML says less than it will hold */
    uint32_t image;      /* locked: number of the program that the process runs, which exec() changes; 0 = unknown */
    uint32_t is_outside_group; /* atomic, by the owner: 1 = the container is a member of a group in space, but the
                                  process is no client of the group's MPS server */
    uint32_t linked; /* locked, by the owner: the cards that the process has joined, one bit for each row of `cards`
                        (region/linked_cards.h) */
    uint8_t reserved[16];
    uint64_t used[REGION_CARDS];        /* locked, by the owner and by processes that reconcile or clear its slot: bytes
                                           charged on each card */
    uint64_t managed[REGION_CARDS];     /* locked: the part of `used` that NVML does not count */
    uint32_t corrections[REGION_CARDS]; /* locked: how often a measurement changed `used` */
};

enum pool_export_role { POOL_EXPORT_FREE, POOL_EXPORTER, POOL_IMPORTER };

/* A pointer into a memory pool that its process exported or imported (region/pool_exports.h). Locked. */
struct region_pool_export {
    uint64_t key;   /* identifies the pointer in every process: hash of its export data */
    uint64_t group; /* identifies the memory: pointers that lie in the same steps of a pool have the same group */
    uint64_t bytes; /* of the group's memory */
    uint64_t pool;  /* the process's own number for the pool (books/pools/pool_ids.h) */
    uint32_t card;  /* index in `cards` */
    uint32_t slot;  /* index in `slots`: the process */
    uint32_t role;  /* enum pool_export_role; written last */
    uint32_t reserved;
};

/* Why launches wait. */
enum region_wait_cause {
    REGION_WAIT_TURN,   /* for a turn of the arbiter's: another container has the card */
    REGION_WAIT_SHARE,  /* for tokens: the container has used its own share */
    REGION_WAIT_DRAIN,  /* for the launched work of the turn, which is measured or fills the turn's depth */
    REGION_WAIT_QUEUED, /* on the card, behind a closed wait, while the host goes on */
};

/* Room for causes in a region. */
enum { REGION_WAIT_CAUSES = 8 };

/* From this length on, a kernel keeps other containers waiting for longer than a few of their turns take. */
#define REGION_LONG_KERNEL_NS 50000000ULL

/* What metrics, the detection of idle containers and the diagnosis read about one card. Atomic; counters only grow. The
 * rows have the order of `cards`. A region of version 1 ends before these rows. */
struct region_activity {
    struct {
        uint64_t ns;
        uint64_t count;
    } waits[REGION_WAIT_CAUSES]; /* by enum region_wait_cause */
    uint64_t turns;              /* turns of the arbiter's that were used */
    uint64_t handovers;          /* of these: turns before which another client had the card */
    uint64_t handover_ns;        /* time of the card that these handovers took, as far as it was measured */
    uint64_t last_launch_at;     /* of a launch that the gate admitted; CLOCK_MONOTONIC, 0 = none so far */
    uint64_t last_kernel_end_at; /* when the work of the last turn that ended drained, as it was expected; as
                                    `last_launch_at` */
    uint64_t host_gaps;          /* launches before which the card was idle, because the host had launched nothing */
    uint64_t host_gap_ns;        /* sum of these idle times */
    uint64_t synchronizes;       /* calls that wait for the card */
    uint64_t synchronize_ns;     /* time in these calls */
    uint64_t pageable_copies;    /* copies between the card and memory of the host that is not pinned */
    uint64_t pageable_bytes;     /* bytes of these copies */
    uint64_t queued_launches;    /* launches that were put behind a closed wait */
    uint64_t long_kernels;       /* kernels and graphs that took REGION_LONG_KERNEL_NS or more, alone in their turns */
    uint64_t long_kernel_ns;     /* sum of their times */
    uint32_t linked;         /* the cards that open and close with this one, one bit for each row of `cards`, with its
                                own; 0 = it does so alone (region/linked_cards.h) */
    uint32_t window;         /* number of the window of linked cards that the card was last opened in */
    uint32_t window_used_us; /* GPU time of the launches admitted in it */
    uint32_t window_state;   /* number of their batches, without those by which the card caught up with others, and
                                flags (REGION_WINDOW_...) */
};

/* Of `window_state`: the card has had its budget; a thread waits for its work. */
#define REGION_WINDOW_SERVED  (UINT32_C(1) << 31)
#define REGION_WINDOW_AWAITED (UINT32_C(1) << 30)

/* How much later than expected the work of a linked card is late. */
#define REGION_LINKED_LATE_AFTER_NS 200000ULL

enum memory_export_role { MEMORY_EXPORT_FREE, MEMORY_EXPORTER, MEMORY_IMPORTER };

/* Whether NVML's figure for an importer has been charged since the holders of the memory last changed. */
enum memory_export_state { MEMORY_UNMEASURED, MEMORY_MEASURED };

/* Memory of no pool that its process exported or imported (region/memory_exports.h). Locked. */
struct region_memory_export {
    uint64_t key;        /* identifies what was exported in every process: hash of the handle */
    uint64_t group;      /* identifies the memory; never 0 */
    uint64_t bytes;      /* of the group's memory */
    uint32_t card;       /* index in `cards` */
    uint32_t slot;       /* index in `slots`: the process */
    uint32_t role;       /* enum memory_export_role; written last */
    uint32_t state;      /* of an importer: enum memory_export_state */
    uint32_t references; /* of an importer: how often it has the memory */
    uint32_t reserved;
};

/* A region of a version before 3 ends before it. */
struct region_memory_exports {
    uint32_t high;          /* locked: one past the highest row in use */
    uint32_t is_incomplete; /* atomic, never reset: 1 = memory was exported or imported that has no row */
    struct region_memory_export rows[REGION_MEMORY_EXPORTS];
};

struct region {
    struct region_header header;
    struct region_card cards[REGION_CARDS];
    struct region_slot slots[REGION_SLOTS];
    struct region_pool_export pool_exports[REGION_POOL_EXPORTS];
    struct region_activity activity[REGION_CARDS];
    struct region_memory_exports memory_exports;
};

static_assert(sizeof(struct region_header) == 256, "layout");
static_assert(offsetof(struct region_header, recoveries) == 32, "layout");
static_assert(offsetof(struct region_header, lock) == 56, "layout");
static_assert(offsetof(struct region_header, fault_client_since) == 120, "layout");
static_assert(sizeof(struct region_card) == 256, "layout");
static_assert(offsetof(struct region_card, is_valid) == 48, "layout");
static_assert(sizeof(struct region_slot) == 704, "layout");
static_assert(offsetof(struct region_card, context_bytes) == 56, "layout");
static_assert(offsetof(struct region_card, orphaned) == 64, "layout");
static_assert(offsetof(struct region_card, awaited_until) == 72, "layout");
static_assert(offsetof(struct region_card, overdraft_used) == 96, "layout");
static_assert(offsetof(struct region_card, spilled) == 112, "layout");
static_assert(offsetof(struct region_card, tokens) == 128, "layout");
static_assert(offsetof(struct region_card, gpu_ns) == 168, "layout");
static_assert(offsetof(struct region_card, windows) == 208, "layout");
static_assert(sizeof(struct region_window) == 24, "layout");
static_assert(sizeof(struct region_activity) == 256, "layout");
static_assert(offsetof(struct region_activity, turns) == 128, "layout");
static_assert(offsetof(struct region, activity) == 753920, "layout");
static_assert(offsetof(struct region_slot, calls) == 24, "layout");
static_assert(offsetof(struct region_slot, is_outside_group) == 40, "layout");
static_assert(offsetof(struct region_slot, used) == 64, "layout");
static_assert(offsetof(struct region_slot, managed) == 320, "layout");
static_assert(offsetof(struct region_slot, corrections) == 576, "layout");
static_assert(sizeof(struct region_pool_export) == 48, "layout");
static_assert(sizeof(struct region_memory_export) == 48, "layout");
static_assert(offsetof(struct region_memory_exports, rows) == 8, "layout");
static_assert(offsetof(struct region, memory_exports) == 762112, "layout");
static_assert(offsetof(struct region, slots) == 8448, "layout");
static_assert(offsetof(struct region, pool_exports) == 729344, "layout");

#endif
