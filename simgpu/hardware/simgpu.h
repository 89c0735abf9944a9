/* What the simulated libcuda and libnvidia-ml share: the cards described by a text file, the memory that processes
 * hold on them, and the failures a test asks for. Everything lives in one directory, see build.py. */
#ifndef SIMGPU_H
#define SIMGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT      __attribute__((visibility("default")))
#define SIM_UUID_SIZE   48
#define SIM_MODEL_SIZE  96
#define SIM_MAX_CARDS   16
#define SIM_MAX_NVLINKS 18
#define SIM_PROCESSES   4096
#define SIM_PATH_SIZE   4096
#define SIM_KIB         (UINT64_C(1) << 10)
#define SIM_MIB         (UINT64_C(1) << 20)

/* One line of `cards`. Sizes in bytes. */
typedef struct {
    char uuid[SIM_UUID_SIZE];
    unsigned char uuid_bytes[16];
    char model[SIM_MODEL_SIZE];
    unsigned index;
    unsigned minor;
    unsigned numa;
    unsigned recovery; /* the repair NVML says the card needs, nvmlDeviceGpuRecoveryAction_t; 0 = none */
    unsigned nvlink_count;
    char nvlink[SIM_MAX_NVLINKS][SIM_UUID_SIZE];
    uint64_t memory;   /* what NVML calls total */
    uint64_t reserved; /* of it, never usable; CUDA's total is memory - reserved */
    uint64_t context;  /* what one CUDA context takes */
    uint64_t module;   /* what one loaded module takes */
    bool healthy;
    bool mig;
} Card;

typedef struct {
    unsigned count;
    Card card[SIM_MAX_CARDS];
} Cards;

/* Cards this container sees, by ascending index. 0, -ENOENT (no such file: no driver here) or -EINVAL (told once on
 * standard error). Reads the files again whenever they changed. */
int sim_cards(Cards *out);
/* The card of that UUID as it is now, whether or not this container sees it. */
bool sim_card(const char *uuid, Card *out);
/* Whether `text` is the UUID or a prefix of it that begins with "GPU-", as CUDA_VISIBLE_DEVICES allows. */
bool sim_uuid_matches(const char *uuid, const char *text);

/* Reads one line, which it changes; false when anything in it is not understood. */
bool sim_parse_card(char *line, Card *card);

/* The path of `name` in the state directory. */
void sim_path(char out[SIM_PATH_SIZE], const char *name);
/* Identity of a file's content, 0 when it does not exist; `settled` is false while it is too young to be sure. */
uint64_t sim_file_version(const char *path, bool *settled);

/* CLOCK_MONOTONIC */
uint64_t now_ns(void);

/* The injected result of an entry point, 0 when none is asked for. */
int sim_fault(const char *function);

/* --- ledger: bytes held, by process and card; survives nothing but the living --- */

typedef struct {
    unsigned pid; /* in the reader's PID namespace */
    uint64_t bytes;
    uint64_t busy_until; /* CLOCK_MONOTONIC ns; 0 = no context of it did anything, UINT64_MAX = has work */
} SimProcess;

/* Takes this process's place in the ledger; 0 or a negative errno. Safe to call again. */
int ledger_join(void);
/* Adds to what this process holds on a card. -ENOMEM when all living processes together would pass `capacity`. */
int ledger_charge(const char *uuid, uint64_t bytes, uint64_t capacity);
void ledger_release(const char *uuid, uint64_t bytes);
uint64_t ledger_used(const char *uuid);
/* Processes that hold memory there or launched there, and that this PID namespace can name; returns how many there are.
 */
unsigned ledger_processes(const char *uuid, SimProcess *out, unsigned capacity);

typedef struct {
    uint64_t id;
    uint64_t bytes;
    char uuid[SIM_UUID_SIZE];
} SimShare;

/* Whether NVML counts memory that is held so with the holder (measured on an H200, driver 580). */
typedef enum { UNSEEN, SEEN, SEEN_ALONE /* once no descriptor of it is open */, SIGHTS } SimSight;

/* Makes bytes of a card that this process holds a share, held once by it and seen. Its number, never given again; 0 =
 * no room. An open descriptor of the share `within`, if not 0, holds it too. */
uint64_t ledger_share(const char *uuid, uint64_t bytes, uint64_t within);
/* What is held of it is less from now on. */
void ledger_share_shrink(uint64_t id, uint64_t bytes);
/* One more hold by this process; false when the share is gone, for nobody held it. */
bool ledger_share_hold(uint64_t id, SimSight sight, SimShare *out);
void ledger_share_drop(uint64_t id, SimSight sight);
bool ledger_share_is_own(uint64_t id); /* made by this process */
/* A file descriptor that holds it too, wherever it is sent, until it is closed; or a negative errno. */
int ledger_share_descriptor(uint64_t id);
uint64_t ledger_share_of_descriptor(int fd); /* 0 when it is none */

/* --- a card's time: what the contexts of all processes do on it, in turn (see hardware/timeline.h) --- */

/* A context's work on a card. */
typedef struct {
    int place; /* of the card */
    uint32_t number;
    uint64_t id; /* 0 = none was opened */
} SimQueue;

/* False when there is no room. */
bool ledger_queue_open(const char *uuid, SimQueue *out);
/* What is not done then never is. */
void ledger_queue_close(SimQueue queue);
/* More work; its position. `runs` says how often the queue's work began again so far. */
uint64_t ledger_queue_add(SimQueue queue, uint64_t ns, uint64_t *runs);
/* The position of an event behind that one. */
uint64_t ledger_queue_mark(SimQueue queue, uint64_t after);
/* When that position passed, CLOCK_MONOTONIC ns; 0 = not yet, and `earliest` is the first moment to look again. All of
 * a queue that is gone has passed. */
uint64_t ledger_queue_passed(SimQueue queue, uint64_t position, uint64_t *earliest);
bool ledger_is_busy(const char *uuid);
/* Counts one use of line `line` of the fault file `version`; true while no more than `limit` were counted. */
bool ledger_count_fault(uint64_t version, unsigned line, unsigned limit);
/* True in a child of fork whose parent had joined: its driver is unusable, as the real one is. */
bool ledger_forked(void);

#endif
