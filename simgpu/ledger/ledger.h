/* The ledger's file, shared by the files that keep it. */
#ifndef LEDGER_H
#define LEDGER_H

#include "hardware/simgpu.h"
#include "hardware/timeline.h"

#define SLOTS       SIM_PROCESSES
#define CARDS       32
#define SHARES      1024
#define FAULT_LINES 64

/* One process. Written by it alone, under the file's lock; cleared by a reaper once the process is gone. */
typedef struct {
    uint64_t bytes[CARDS];
    uint64_t busy_until[CARDS]; /* CLOCK_MONOTONIC, ns, as last told (ledger/card_time.c); UINT64_MAX = has work */
} Slot;

/* Memory that several processes may hold, in none of their slots. Written under the file's lock. */
typedef struct {
    uint64_t id; /* 0 = free; modulo SHARES its place in the array, so that a number names it for good */
    uint64_t bytes;
    uint32_t place;    /* of the card */
    uint32_t exporter; /* slot of the process that made it, SLOTS once that is gone */
    uint64_t within;   /* the share whose descriptors hold this one too; 0 = none */
    uint64_t holders[SLOTS / 64];
    uint64_t seen[SLOTS / 64];     /* the holders that NVML counts it with */
    uint64_t imported[SLOTS / 64]; /* those that it counts it with once no descriptor is open */
} Share;

/* What a card does when. `lock` is of it alone, for it is taken at every launch. */
typedef struct {
    uint64_t lock;   /* times given back, and who has it: its slot + 1; 0 = nobody */
    uint64_t looked; /* when it was last seen who lives; CLOCK_MONOTONIC, ns */
    Timeline timeline;
} CardTime;

typedef struct {
    char magic[8];
    uint32_t high; /* slots ever used: no scan goes further */
    uint32_t cards;
    uint64_t fault_version;
    uint32_t fault_used[FAULT_LINES];
    char uuid[CARDS][SIM_UUID_SIZE]; /* a card's place in a slot, in order of first sight */
    uint64_t peak[CARDS];            /* the most the living ever held together */
    Slot slot[SLOTS];
    uint64_t share_high; /* shares ever used */
    uint64_t share_ids;  /* given so far, in rounds of SHARES */
    Share share[SHARES];
    CardTime time[CARDS];
} State;

_Static_assert(sizeof(Slot) == 512 && offsetof(State, slot) == 2072 && sizeof(Share) == 1568,
               "simgpu/usage.py reads this layout");

extern State *state;
extern int own_slot; /* -1 = not joined */

/* The locks: of this process, and of the file. */
void ledger_enter(void);
void ledger_leave(void);
bool ledger_alive(int slot);
/* Maps the file as SIMGPU_STATE says now, unless this process has joined; 0 or a negative errno. */
int ledger_attached(void);
/* The PID of the slot's process; 0 when this PID namespace has no name for it. */
unsigned ledger_owner(uint32_t slot);

/* --- ledger/accounts.c --- */

/* The card's place, made where there is none; -1 when there is no room. Under the file's lock. */
int ledger_place(const char *uuid);
/* Whether all processes together stay within `capacity` with so many bytes more; looks for the dead where they would
 * make a difference. Under the file's lock. */
bool ledger_has_room(int place, uint64_t bytes, uint64_t capacity);

/* The card's place, -1 when nobody holds anything there. */
int ledger_place_of(const char *uuid);

/* --- ledger/card_time.c --- */

/* The slot's process is gone, and its work. */
void time_forget(uint32_t slot);
/* Leaves in the slots until when each process keeps the card busy. */
void time_tell(int place);

/* --- ledger/shared_memory.c, under the file's lock --- */

/* Bytes of all shares of a card: of every entry, or of those that anybody living holds. */
uint64_t shares_sum(int place, bool living);
/* Bytes NVML shows a process with: those of the shares it made and is still seen to hold, and of shares whose maker is
 * not, and whose first living holder that is seen it is. */
uint64_t shares_shown(uint32_t slot, int place);
/* The slot's process is gone. */
void shares_forget(uint32_t slot);
/* Frees the entries that nobody living holds. */
void shares_reap(void);
/* In a child of fork, which holds nothing but descriptors, and before another file is used. */
void shares_start_anew(void);

#endif
