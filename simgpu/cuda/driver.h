/* What the files of the simulated libcuda share. One process-wide lock guards all of it; see `driver_enter`. */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include "hardware/simgpu.h"

#include <cuda.h>

#define SIM_CUDA_VERSION 13000         /* what a 580 driver speaks; the header may be newer */
#define PAGE             (2 * SIM_MIB) /* what the real driver takes from a card at a time */
#define SMALL_UNIT       512
#define POOL_BLOCK       (32 * SIM_MIB) /* what a pool takes at a time */

typedef struct {
    char uuid[SIM_UUID_SIZE];
    CUcontext primary;
    unsigned primary_references;
    unsigned primary_flags;
    CUmemoryPool default_pool;
    CUmemoryPool current_pool;
} Device;

struct CUctx_st {
    struct CUctx_st *next;
    unsigned long long id;
    CUdevice device;
    unsigned flags;
    bool primary;
    CUcontext owner; /* of what a green context makes: the primary context; NULL in any other */
    uint64_t overhead;
    uint64_t stack;     /* bytes for a thread; 0 = as at first */
    SimQueue queue;     /* its work on the card; none until there is some */
    uint64_t submitted; /* position behind all of it */
    uint64_t told;      /* runs of the queue before which every event's time is known */
    CUevent events;     /* those whose time is not */
    struct CUstream_st *streams;
};

/* Of a pool, what an exported pointer is of: a share of its own, for it is all that others keep (cuda/pool_pieces.c). */
typedef struct Piece Piece;

struct CUmemPoolHandle_st {
    struct CUmemPoolHandle_st *next;
    bool destroyed; /* by the program; goes when its last allocation does */
    CUdevice device;
    uint64_t used;
    uint64_t used_high;
    uint64_t reserved;
    uint64_t reserved_high;
    uint64_t threshold;
    uint64_t limit; /* of what is used; 0 = the card's */
    CUmemAccess_flags access[SIM_MAX_CARDS];
    bool exportable;
    bool imported;
    SimSight sight;   /* of its share, as it was imported */
    unsigned imports; /* allocations of an imported pool */
    uint64_t share;   /* its number once it was exported, or as it was imported; of no bytes; 0 = none */
    Piece *pieces;
};

/* A function of a module, or a kernel of a library: a program launches both. */
struct CUfunc_st {
    struct CUfunc_st *next;
    CUlibrary library; /* of a kernel; NULL in a module */
    uint64_t duration_ns;
    uint64_t local; /* bytes for a thread */
    char name[128];
};

struct CUmod_st {
    struct CUmod_st *next;
    CUcontext context;
    CUlibrary library; /* whose code it is, NULL when the program loaded it by itself */
    uint64_t charged;
    struct CUfunc_st *functions;
};

/* KIND_IPC, KIND_POOL_IPC and KIND_EXTERNAL are what others allocated, KIND_GRAPH is what a graph left. */
typedef enum {
    KIND_DEVICE,
    KIND_SMALL,
    KIND_MANAGED,
    KIND_HOST,
    KIND_POOL,
    KIND_IPC,
    KIND_POOL_IPC,
    KIND_EXTERNAL,
    KIND_GRAPH
} Kind;

typedef struct {
    CUdeviceptr address;
    uint64_t size;    /* as asked */
    uint64_t charged; /* of the card, of shared pages or of the pool */
    Kind kind;
    CUcontext context; /* NULL once it ended and the memory is a pool's */
    CUmemoryPool pool;
    uint64_t share;     /* its number once others may open it; 0 = none, or that of its page */
    SimSight sight;     /* of what others allocated */
    CUdeviceptr origin; /* where its exporter has it */
    unsigned opened;    /* how often, of KIND_IPC */
    CUdevice device;    /* the context's, but of KIND_GRAPH */
} Allocation;

/* Every entry point begins here: an injected result, then whether the driver is usable. Takes the lock on success. */
CUresult driver_enter(const char *function);
CUresult driver_leave(CUresult result);

#define ENTER()                                     \
    do {                                            \
        CUresult entered_ = driver_enter(__func__); \
        if (entered_ != CUDA_SUCCESS) {             \
            return entered_;                        \
        }                                           \
    } while (0)
#define LEAVE(result) return driver_leave(result)
#define REQUIRE(condition, error)       \
    do {                                \
        if (!(condition)) {             \
            return driver_leave(error); \
        }                               \
    } while (0)

/* All below: under the lock. */
Device *device_at(CUdevice ordinal); /* NULL when there is none */
CUdevice device_count(void);
/* The card as `cards` says now; false when it is gone or not healthy. */
bool device_card(CUdevice ordinal, Card *out);
CUresult device_charge(CUdevice ordinal, uint64_t bytes);
void device_release(CUdevice ordinal, uint64_t bytes);
/* Makes charged memory a share unless it is one: `share` is its number, 0 until then. */
CUresult device_share(CUdevice ordinal, uint64_t bytes, uint64_t *share);
/* Gives it back, whichever it is. */
void device_give(CUdevice ordinal, uint64_t bytes, uint64_t share);
/* The device of that UUID, -1 when this program sees none. */
CUdevice device_of_uuid(const char *uuid);
/* A hold of the share that a descriptor is of; a result. Memory that this process made itself is seen otherwise than
 * another's. */
CUresult share_from_descriptor(void *descriptor, SimSight *sight, SimShare *out);
/* Makes a descriptor of a share for the program; a result. */
CUresult share_to_descriptor(uint64_t share, int *out);

/* CUDA_ERROR_INVALID_CONTEXT when the thread has none: the context on top, and the one that what is made now belongs
 * to, which is another where a green context is on top. */
CUresult context_top(CUcontext *out);
CUresult context_current(CUcontext *out);
CUcontext context_add(const struct CUctx_st *wanted); /* NULL without memory */
CUresult context_make(CUcontext *out, CUdevice dev, unsigned flags, bool primary);
void context_destroy(CUcontext context);
CUresult primary_retain(CUdevice dev, CUcontext *out);
void primary_release(CUdevice dev);
bool context_alive(CUcontext context);

Allocation *allocation_at(CUdeviceptr address);                       /* that begins there */
Allocation *allocation_holding(CUdeviceptr address);                  /* that contains it */
CUresult allocation_add(Allocation allocation, CUdeviceptr *address); /* gives it an address unless it has one */
CUresult allocation_free(Allocation *allocation);
void allocation_give_back(const Allocation *allocation); /* what it takes, without the entry */
void allocations_free_of(CUcontext context);
bool mapping_holds(CUdeviceptr address, uint64_t size); /* of cuMemMap */

/* Device memory as cuMemAlloc takes it, or as an array does. */
CUresult memory_allocate(CUcontext context, CUdeviceptr *address, uint64_t size, bool for_arrays);

/* What cuMemFree may free: all but host memory and what cuIpcCloseMemHandle closes. */
bool allocation_is_freeable(const Allocation *allocation);
/* What this process opened of what another allocated; NULL when it has not. */
Allocation *allocation_imported(Kind kind, uint64_t share, CUdeviceptr origin);

CUresult pages_take(CUdevice device, uint64_t bytes, bool for_arrays, CUdeviceptr *address);
void pages_give(CUdeviceptr address, uint64_t bytes);
CUresult page_share(CUdeviceptr address, uint64_t *share); /* the page that holds it, as device_share */
uint64_t page_share_number(CUdeviceptr address);           /* 0 = it was not exported */
void pool_release(CUmemoryPool pool, uint64_t bytes);
CUmemoryPool pool_make(CUdevice ordinal);    /* NULL without memory */
CUmemoryPool pool_current(CUdevice ordinal); /* NULL without memory */
void pool_drop_if_done(CUmemoryPool pool);
void pools_trim(CUdevice ordinal); /* at a synchronisation point */

/* The share that the exported pointer is of, and of an imported pool that it holds from now on; a result. */
CUresult piece_export(CUmemoryPool pool, const Allocation *allocation, uint64_t *share);
CUresult piece_import(CUmemoryPool pool, uint64_t share);
/* Bytes of the pool's reserve that are in pieces. */
uint64_t pieces_reserved(const struct CUmemPoolHandle_st *pool);
/* Takes freed pieces out of the reserve, `most` bytes at most: how many. What is out of it others keep, and the pool's
 * handle. */
uint64_t pieces_hide(CUmemoryPool pool, uint64_t most);
/* The handle is gone. */
void pieces_let_go(CUmemoryPool pool);
void pieces_free(CUmemoryPool pool);

/* Whether a call that could make a captured stream wait may be made now: a result. Otherwise the captures are invalid.
 */
CUresult capture_forbids(void);
/* What an asynchronous call does in a captured stream, true when it is one: a node of a type, or of memory. */
bool capture_takes(CUstream stream, CUgraphNodeType type, CUresult *result);
bool capture_takes_allocation(CUstream stream, CUdevice device, uint64_t size, CUdeviceptr *address, CUresult *result);
bool capture_takes_free(CUstream stream, CUdeviceptr address, CUresult *result);

void streams_free_of(CUcontext context);
CUresult stream_make(CUstream *out, CUcontext context, unsigned flags);
uint64_t local_bytes(const char *kernel);
/* Takes what is missing for a kernel that needs so many bytes for a thread. */
CUresult local_grow(CUcontext context, uint64_t bytes);
CUcontext stream_context(CUstream stream); /* NULL where there is none current for a default stream */
CUresult stream_run(CUstream stream, uint64_t duration_ns);

void graph_memory_release(CUdevice device, uint64_t bytes);
void graph_memory_trim(CUdevice device);

void arrays_free_of(CUcontext context); /* their memory goes with the context's allocations */

CUresult module_load(CUmodule *out, CUlibrary library); /* into the current context */
CUmodule module_of(CUlibrary library, CUcontext context);
void modules_unload_of(CUlibrary library);
void modules_free_of(CUcontext context);
/* The function of that name, added to the list where it is not yet; NULL without memory. */
CUfunction function_named(CUfunction *list, const char *name);
void functions_free(CUfunction *list);

/* Its work is gone, and its events have passed. */
void queue_end(CUcontext context);
/* Sleeps until that position has passed, without the lock. */
void queue_await(SimQueue queue, uint64_t position);
/* Gives the lock back, sleeps until then, takes it again. */
void sleep_until(uint64_t ns);

static inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

#endif
