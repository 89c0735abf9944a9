/* What the files of the walk program share. main.c says what it does. */
#ifndef WALK_H
#define WALK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "driver/abi.h"

#define KIB     (1ULL << 10)
#define MIB     (1ULL << 20)
#define KEPT    6 /* objects of a kind that a walker keeps in one context */
#define STREAMS 4
#define EVENTS  6
#define GRAPHS  3
#define WALKERS 8
#define HOMES   4
#define KERNELS 4
#define ORDERS  32
#define CALLS   300 /* functions of the host in a round */

#define WORDS_A_TRACK  3
#define WORDS_A_WALKER (400 * WORDS_A_TRACK) /* each new stream of a round takes words of its own */

struct mapped {
    CUdeviceptr address;
    CUmemGenericAllocationHandle physical;
};

struct pooled {
    CUmemoryPool pool;
    CUdeviceptr pointer;
};

/* A stream with two words of host memory: the stream counts its own progress in `done`, and waits for `gate`. */
struct track {
    bool is_there;
    bool is_free; /* the legacy default stream does not hold it back */
    CUstream stream;
    uint32_t *done; /* written by the card */
    uint32_t asked; /* last value that the stream was told to write */
    uint32_t *gate; /* written by the opener thread */
    uint32_t *wanted; /* atomic: what the gate is to become */
};

struct record {
    CUevent event;
    struct track *track; /* NULL: not recorded yet */
    uint32_t asked;      /* progress of the track when the event was recorded */
};

/* While `later` says at least `then`, `earlier` says at least `first`. */
struct order {
    uint32_t *earlier, *later;
    uint32_t first, then;
};

struct graph {
    CUgraph graph;
    CUgraphExec ready;
    CUgraphNode kernel; /* its last kernel; NULL: captured, or without kernels */
};

/* A context that the walker may be in, and what it made there. */
struct home {
    bool is_there, is_primary;
    CUdevice device;
    CUcontext context;
    CUdeviceptr plain[KEPT], async[KEPT];
    void *host[KEPT];
    CUarray array[KEPT];
    CUmipmappedArray mipmap[KEPT];
    CUmemGenericAllocationHandle physical[KEPT];
    struct mapped mapped[KEPT];
    struct pooled pooled[KEPT];
    CUmodule module;
    CUfunction kernels[KERNELS], spin;
    CUlibrary library[KEPT];
    struct track tracks[STREAMS];
    struct record records[EVENTS];
    struct graph graphs[GRAPHS];
};

/* What a function of the host is told: the progress that it counts. */
struct call {
    uint32_t *done;
    uint32_t value;
};

struct walker {
    pthread_t id;
    unsigned number;
    unsigned long long chance;
    FILE *trace;
    struct home homes[HOMES], *home;
    struct order orders[ORDERS];
    unsigned order_count;
    uint32_t *words; /* WORDS_A_WALKER */
    unsigned words_used;
    struct call host_calls[CALLS];
    unsigned calls_used;
    unsigned long long calls;
};

struct step {
    const char *name;
    void (*take)(struct walker *walker);
    unsigned weight;
};

extern const struct step memory_steps[], pool_steps[], work_steps[], graph_steps[], context_steps[], process_steps[];
extern const struct step shared_event_steps[];

struct functions {
#define CALL(name) __typeof__(&(name)) name;
#include "calls.h"
};
extern struct functions cuda;

/* Calls a function and notes its result in the trace. */
#define DO(walker, name, ...) note((walker), #name, cuda.name(__VA_ARGS__))

struct options {
    unsigned threads, steps;
    bool is_tight;    /* memory may run out; results are then not comparable with a run without the library */
    bool is_child;    /* started by another walk */
    bool has_signals; /* a timer interrupts system calls */
};
extern struct options options;
extern int wrong; /* atomic: the exit code */

/* A number below `most`. */
unsigned next(struct walker *walker, unsigned most);
CUresult note(struct walker *walker, const char *what, CUresult result);
/* Ends up as exit code 1 and a line on standard error. */
void complain(const struct walker *walker, const char *what, long value);
void complain_of_call(const char *what, long value);
void find_functions(bool by_query);

/* A track whose stream may not be there. */
struct track *any_track(struct walker *walker);
/* A kernel of the home's module, which is loaded first; NULL when that fails. */
CUfunction any_kernel(struct walker *walker);
void track_place(struct walker *walker, struct track *track);
void order_check(struct walker *walker);
void home_enter(struct walker *walker, struct home *home);
bool home_make(struct walker *walker, struct home *home);
void home_end(struct walker *walker, struct home *home, bool is_abandoned);
void memory_free(struct walker *walker, struct home *home);
void pools_free(struct walker *walker, struct home *home);
void events_free(struct walker *walker, struct home *home);
void work_free(struct walker *walker, struct home *home);
void graphs_free(struct walker *walker, struct home *home);

/* Opens all gates about a millisecond after they are wanted, so that no stream waits for ever. */
void opener_start(uint32_t *gates, unsigned count);
void opener_end(void);

/* Runs this program again as another process, and returns its exit code. */
int run_again(struct walker *walker, char *const arguments[]);
/* Makes the primary context of the first device current in a child program; false where a call failed. */
bool child_begins(void);
int import_memory(const char *hexadecimal);
int await_event(const char *hexadecimal);

/* A handle as hexadecimal text, which fits the arguments of a program. */
#define TEXT_SIZE(handle) (2 * sizeof(handle) + 1)
void to_text(char *text, const void *handle, size_t count);
void from_text(void *handle, const char *text, size_t count);

#endif
