/* Lock order. `enum lock` ranks every lock of the limiter: a thread takes locks only in this order, from top to bottom,
 * and never takes a lock that it already holds. A build with -DVGPU_CHECK_LOCKS aborts where a thread breaks the order;
 * tests/limiter builds it so.
 *
 * A lock is held for arithmetic and table look-ups, never across a call into the CUDA driver. The exceptions are
 * LOCK_POOL_GUARD and LOCK_POOLS: see books/pools/pool_guard.h and books/pools/pools.h. */
#ifndef VGPU_PROCESS_LOCK_H
#define VGPU_PROCESS_LOCK_H

enum lock {
    LOCK_HIDDEN_PAGES,    /* compute/gate/gate_teardown.c */
    LOCK_GATE,            /* compute/gate/gate_state.h: one mutex for each card, in `struct gate` */
    LOCK_ARBITER_LINK,    /* compute/link/arbiter_link.h: one mutex for each card, in `struct arbiter_link` */
    LOCK_POOL_GUARD,      /* books/pools/pool_guard.c: held while the driver destroys a pool */
    LOCK_POOL_IDS,        /* books/pools/pool_ids.c */
    LOCK_PHYSICAL_MEMORY, /* books/physical/physical_memory.c; the tables of handles.c, mappings.c and references.c */
    LOCK_POOLS,           /* books/pools/pools.c: held while the driver is asked what a pool has reserved */
    LOCK_SPACE_CLIENT,    /* hooks/programs/space_client.c */
    LOCK_CONTAINER,       /* container/container.c */
    LOCK_REGION,          /* region/region.c: in the region's header, shared by the container's processes */
    LOCK_EXPORT_ENDS,     /* region/pending_export_ends.c */
    LOCK_EXPORTS,         /* books/pools/exports.c */
    LOCK_IMPORTS,         /* books/pools/imports.c */
    LOCK_POINTERS,        /* books/pointers/pointers.c */
    LOCK_BINDINGS,        /* books/physical/bindings.c */
    LOCK_IPC_EXPORTS,     /* books/pointers/ipc_exports.c */
    LOCK_IPC_IMPORTS,     /* books/pointers/ipc_imports.c */
    LOCK_ARRAY_RECORDS,   /* books/arrays/array_records.c */
    LOCK_ARRAY_CHUNKS,    /* books/arrays/array_chunks.c */
    LOCK_GRAPH_NEEDS,     /* books/graphs/graph_needs.c */
    LOCK_GRAPH_CHARGES,   /* books/graphs/graph_charges.c */
    LOCK_LIBRARIES,       /* hooks/programs/libraries.c */
    LOCK_CONTEXT_LIMITS,  /* charge/measure/context_limits.c */
    LOCKS,
};

/* Takes or releases a mutex of this process; lock_take blocks. Not for LOCK_GATE, LOCK_ARBITER_LINK and LOCK_REGION:
 * their mutexes lie in the structures that they guard, and their users call lock_note_taken and lock_note_released. */
void lock_take(enum lock lock);
void lock_release(enum lock lock);

/* Takes a lock and holds it to the end of the enclosing block, by whichever way that is left. */
#define HOLD_LOCK(name) __attribute__((cleanup(lock_drop), unused)) const enum lock held_##name = lock_hold(name)

static inline enum lock lock_hold(enum lock lock) {
    lock_take(lock);
    return lock;
}

static inline void lock_drop(const enum lock *held) { lock_release(*held); }

/* Takes every mutex of lock.c in the order of the ranks, or releases every mutex in the opposite order. For fork(). */
void lock_take_all(void);
void lock_release_all(void);

/* Tells the check that this thread is about to wait for, or has released, a mutex that lies outside lock.c. */
#ifdef VGPU_CHECK_LOCKS
void lock_note_taken(enum lock lock);
void lock_note_released(enum lock lock);
#else
static inline void lock_note_taken(enum lock lock) { (void)lock; }
static inline void lock_note_released(enum lock lock) { (void)lock; }
#endif

#endif
