/* Lock order. This list ranks every lock of the limiter: a thread takes them from top to bottom only, and never one
 * that it holds. A build with -DVGPU_CHECK_LOCKS aborts where a thread does otherwise (tests/limiter does so).
 *
 * A lock is held for arithmetic and table look-ups, never across a call of the driver's, except POOL_GUARD and POOLS,
 * whose comments say why. */
#ifndef VGPU_PROCESS_LOCK_H
#define VGPU_PROCESS_LOCK_H

enum lock {
    LOCK_GATE,              /* compute/gate_state.h: one mutex per card, in `struct gate` */
    LOCK_ARBITER_LINK,      /* compute/arbiter_link.h: one mutex per card, in `struct arbiter_link` */
    LOCK_POOL_GUARD,        /* books/pool_guard.c: held while the driver destroys a pool */
    LOCK_POOL_IDS,          /* books/pool_ids.c */
    LOCK_PHYSICAL_MEMORY,   /* books/physical_memory.c, and the tables below it: handles, mappings, references */
    LOCK_POOLS,             /* books/pools.c: held while the driver is asked what a pool has reserved */
    LOCK_CONTAINER,         /* container/container.c */
    LOCK_REGION,            /* region/region.c: shared by the container's processes, in the region's header */
    LOCK_PENDING_POOL_ENDS, /* region/pending_pool_ends.c */
    LOCK_EXPORTS,           /* books/exports.c */
    LOCK_IMPORTS,           /* books/imports.c */
    LOCK_POINTERS,          /* books/pointers.c */
    LOCK_BINDINGS,          /* books/bindings.c */
    LOCK_IPC_EXPORTS,       /* books/ipc_exports.c */
    LOCK_ARRAY_RECORDS,     /* books/array_records.c */
    LOCK_ARRAY_CHUNKS,      /* books/array_chunks.c */
    LOCK_GRAPH_NEEDS,       /* books/graph_needs.c */
    LOCK_GRAPH_MEMORY,      /* hooks/graphs/graph_memory.c */
    LOCK_LIBRARIES,         /* hooks/programs/libraries.c */
    LOCKS,
};

/* Takes and releases the process's mutex of a rank. GATE, ARBITER_LINK and REGION have none here: their mutexes lie in
 * the structures that they guard, and are announced by the two functions after these. */
void lock_take(enum lock lock);
void lock_release(enum lock lock);

/* Every mutex of this file in the order of the ranks, and in the opposite order: around a fork. */
void lock_take_all(void);
void lock_release_all(void);

/* A mutex of that rank that lies elsewhere is about to be waited for, or was released. */
#ifdef VGPU_CHECK_LOCKS
void lock_note_taken(enum lock lock);
void lock_note_released(enum lock lock);
#else
static inline void lock_note_taken(enum lock lock) { (void)lock; }
static inline void lock_note_released(enum lock lock) { (void)lock; }
#endif

#endif
