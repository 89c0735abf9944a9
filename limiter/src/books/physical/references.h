/* Reference counts of physical memory, by memory number. books/physical/physical_memory.h tells how the memory lives
 * and what NVML counts. Not locked: the caller holds LOCK_PHYSICAL_MEMORY. */
#ifndef VGPU_BOOKS_PHYSICAL_REFERENCES_H
#define VGPU_BOOKS_PHYSICAL_REFERENCES_H

#include <stdbool.h>
#include <stdint.h>

enum reference_kind {
    REFERENCE_MADE,     /* a handle from the memory's creation, or a mapping by one */
    REFERENCE_IMPORTED, /* a handle that was imported from a descriptor, or a mapping by one */
    REFERENCE_OTHER,    /* an array, a multicast object or a buffer, for which NVML counts nothing */
    REFERENCE_KINDS,
};

enum memory_state {
    MEMORY_FREED,
    MEMORY_HIDDEN, /* NVML has ceased to count it */
    MEMORY_SHOWN,  /* NVML counts it again */
};

/* Physical memory, and what changed for it. */
struct physical_memory {
    int card;                /* the region's row */
    uint64_t bytes;          /* 0: nothing has changed */
    enum memory_state state; /* its new state */
    bool was_hidden;         /* of freed memory: NVML did not count it any more */
    uint64_t exported;       /* of freed memory: its number, if it was exported, so that another process may hold it */
    uint64_t pool;           /* of freed memory: the pool's number, 0 where it was no pool's */
    uint64_t group;          /* of imported memory: its group (region/memory_exports.h); 0 = this process made it */
};

/* Exported memory. */
struct exported_memory {
    uint64_t number; /* 0 = the memory is unknown */
    int card;        /* the region's row */
    uint64_t bytes;
    uint64_t group; /* of memory that was imported before */
};

/* A number for new or imported memory, without references; 0 where malloc fails. */
uint64_t references_begin(struct physical_memory memory);

/* A number for a pool's memory, without references; 0 where malloc fails. */
uint64_t references_begin_pool(void);

/* Sets card and size of a pool's memory, which are known when the pool ends. */
void references_set_pool(uint64_t number, int card, uint64_t bytes);

/* Forgets a number that has no references. */
void references_cancel(uint64_t number);

/* The region's row of the memory's card; -1 where the number is unknown. */
int references_card(uint64_t number);

/* Adds a reference; no effect where the number is unknown. */
void references_add(uint64_t number, enum reference_kind kind);

/* Removes a reference, and returns what changed. */
struct physical_memory references_drop(uint64_t number, enum reference_kind kind);

/* Bytes on the region's row `card` that this process made by cuMemCreate and NVML counts for this process while it has
 * a context. */
uint64_t references_shown_bytes(int card);

/* Records that the memory is exported as a descriptor, and returns it. */
struct exported_memory references_export(uint64_t number, int descriptor);

/* The memory number of an exported descriptor; 0 where it is unknown. */
uint64_t references_exported(int descriptor);

/* Forgets a descriptor that the driver has taken over. */
void references_disown(int descriptor);

/* Finds memory whose descriptor was closed since the last call, and returns what changed; its bytes are 0 where there
 * is none. */
struct physical_memory references_sweep(void);

/* Removes everything, in the child of a fork. */
void references_forget_all(void);

#endif
