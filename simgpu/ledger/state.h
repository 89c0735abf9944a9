/* The ledger's file `state`: its layout, its lock, and the slots of the processes that use the simulated GPU. Only the
 * other files of this folder include this header. */
#ifndef SIMGPU_LEDGER_STATE_H
#define SIMGPU_LEDGER_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/cards.h"
#include "hardware/timeline.h"
#include "ledger/card_queue.h"

#define SLOTS          4096
#define LEDGER_CARDS   32
#define SHARED_ENTRIES 1024
#define FAULT_LINES    64
#define SHARED_EVENTS  512
#define MPS_SERVERS    64
#define COLLECTIVES    256

/* One process. Written only by that process, under the file's lock; cleared by any process once it is dead. */
struct slot {
    uint64_t bytes[LEDGER_CARDS];
    uint64_t busy_until[LEDGER_CARDS]; /* CLOCK_MONOTONIC ns at the last card_time_publish; UINT64_MAX = has work */
    uint32_t contexts[LEDGER_CARDS];
    uint64_t server;        /* id of the MPS server that the process is a client of; 0 = of none */
    uint64_t faults_before; /* of that server, when the process became its client */
    uint64_t most_bytes;    /* on each card, as a client; 0 = no limit */
    uint64_t percentage;    /* of the multiprocessors, as a client */
};

/* Memory that several processes may hold, in addition to the bytes of their slots. Written under the file's lock. */
struct shared_entry {
    uint64_t id; /* 0 = free; id % SHARED_ENTRIES is the index of the entry, and no id is used twice */
    uint64_t bytes;
    uint32_t card;      /* index of the card */
    uint32_t exporter;  /* slot of the process that made the memory; SLOTS once that process is dead */
    uint64_t parent_id; /* shared memory whose open descriptors hold this memory too; 0 = none */
    uint64_t holders[SLOTS / 64];
    uint64_t attributed[SLOTS / 64];             /* holders as ATTRIBUTED */
    uint64_t attributed_when_closed[SLOTS / 64]; /* holders as ATTRIBUTED_WHEN_CLOSED */
};

/* The time line of one card. It has a lock of its own, because each launch takes that lock. */
struct card_time {
    uint64_t lock;       /* low 16 bits: slot of the holder + 1, 0 = free; high bits: number of releases */
    uint64_t checked_at; /* CLOCK_MONOTONIC ns of the last search for dead processes */
    struct timeline timeline;
};

/* An event that several processes share. Written under the file's lock. */
struct shared_event {
    uint64_t id;       /* 0 = free; id % SHARED_EVENTS is the index of the entry, and no id is used twice */
    uint64_t queue_id; /* of the queue that it was last recorded in; 0 = never recorded */
    uint64_t position;
    uint32_t queue; /* number of the queue */
    int32_t card;   /* index of the card */
    uint32_t maker; /* slot of the process that created the event */
};

/* A process that is an MPS server. Written under the file's lock. */
struct mps_server {
    uint64_t id; /* 0 = free; id % MPS_SERVERS is the index of the entry, and no id is used twice */
    uint64_t faults;
    uint64_t slot;
};

/* The kernel of one rank of a collective: the queue that it was launched into. */
struct collective_rank {
    int32_t card;
    uint32_t queue;
    uint64_t queue_id;
};

/* Written with the time lines of all cards locked. */
struct collective {
    uint64_t ticket; /* 0 = free; ticket % COLLECTIVES is the index of the entry, and no ticket is used twice */
    uint64_t group;
    uint64_t round;
    uint32_t ranks;
    uint32_t joined; /* kernels that were launched */
    uint32_t begun;  /* of these */
    struct collective_rank rank[COLLECTIVE_RANKS];
};

struct state {
    char magic[8];
    uint32_t slots_used; /* slots from here on were never used */
    uint32_t cards;
    uint64_t fault_version; /* version of the file `fail` that fault_used belongs to */
    uint32_t fault_used[FAULT_LINES];
    char uuid[LEDGER_CARDS][UUID_SIZE]; /* by index of the card: the order in which cards were first used */
    uint64_t peak[LEDGER_CARDS];        /* most bytes that living processes held together */
    struct slot slot[SLOTS];
    uint64_t shared_used; /* entries from here on were never used */
    uint64_t shared_ids;  /* multiple of SHARED_ENTRIES, added to an entry's index to form its next id */
    struct shared_entry shared[SHARED_ENTRIES];
    struct card_time time[LEDGER_CARDS];
    uint64_t event_ids; /* multiple of SHARED_EVENTS, as shared_ids */
    struct shared_event event[SHARED_EVENTS];
    uint64_t mps_ids; /* multiple of MPS_SERVERS, as shared_ids */
    struct mps_server mps_server[MPS_SERVERS];
    uint64_t collective_tickets; /* multiple of COLLECTIVES, as shared_ids */
    uint64_t collectives_open;   /* atomic: entries in use */
    struct collective collective[COLLECTIVES];
};

static_assert(sizeof(struct slot) == 672 && offsetof(struct state, slot) == 2072 && sizeof(struct shared_entry) == 1568,
              "simgpu/usage.py reads this layout");

extern struct state *state; /* NULL before ledger_attach; MAP_FAILED when the file cannot be used */
extern int own_slot;        /* -1 = this process has not joined */

/* Whether the file at `path` is mapped, or another one and this process has a slot there. */
bool state_is_mapped(const char *path);
/* Maps the file at `path`, and creates it when there is none. Does nothing when state_is_mapped. Returns 0 or a
 * negative errno. Under the process's lock. */
int state_map(const char *path);
/* In a child of fork: leaves the slot and the mapping to the parent, without releasing the parent's locks. */
void state_leave_to_parent(void);

/* Holds the process's lock, a mutex, to the end of the enclosing block. */
#define HOLD_PROCESS_LOCK() \
    __attribute__((cleanup(state_drop_process), unused)) const bool is_process_held = state_hold_process()
bool state_hold_process(void); /* true */
void state_drop_process(const bool *held);

/* Holds the file's lock, and the process's around it, to the end of the enclosing block. */
#define HOLD_STATE() HELD_STATE const bool is_state_held = state_hold(true)

/* Declares a variable for the result of state_hold, which takes the locks of HOLD_STATE only where they are needed. */
#define HELD_STATE __attribute__((cleanup(state_drop), unused))
bool state_hold(bool is_needed); /* returns `is_needed` */
void state_drop(const bool *held);

/* Makes the slot this process's own. Returns 0 or a negative errno. Under the file's lock. */
int slot_claim(int slot);
bool slot_is_alive(int slot);
/* The PID of the slot's process in the PID namespace of the caller; 0 when it has none there. */
unsigned slot_pid(uint32_t slot);

/* Index of the card; -1 when no process used the card yet. */
int card_index(const char *uuid);
/* Index of the card, which is added when it is new; -1 when there is no room. Under the file's lock. */
int card_index_or_add(const char *uuid);

#endif
