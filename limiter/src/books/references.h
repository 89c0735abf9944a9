/* What the driver holds physical memory by, counted, by numbers of ours: handles come again, these do not. What becomes
 * of the memory with them is told in backings.h. Not locked: its users lock. */
#ifndef VGPU_BOOKS_REFERENCES_H
#define VGPU_BOOKS_REFERENCES_H

#include <stdbool.h>
#include <stdint.h>

/* What a reference is by: a handle from the making, one of an import, or neither. */
enum reference_kind { REFERENCE_MADE, REFERENCE_IMPORTED, REFERENCE_UNSEEN, REFERENCE_KINDS };

enum memory_state { MEMORY_FREED, MEMORY_HIDDEN, MEMORY_SHOWN };

struct physical_memory {
    int card;
    uint64_t bytes; /* 0: nothing has changed */
    enum memory_state fate;
    bool was_hidden;  /* when it was freed */
    bool is_exported; /* likewise: another process may hold it on */
    uint64_t pool;    /* likewise: the number of the pool whose memory it was, 0 for other memory */
};

/* New memory, without references: its number, 0 when our own memory is out. */
uint64_t references_begin(struct physical_memory physical_memory);

/* The same for a pool, whose size is known at its end. */
uint64_t references_begin_pool(void);
void references_set_pool(uint64_t number, int card, uint64_t bytes);

/* It was never used. */
void references_cancel(uint64_t number);

/* One more, or one less, of memory that is known. */
void references_add(uint64_t number, enum reference_kind sort);
struct physical_memory references_drop(uint64_t number, enum reference_kind sort);

/* Memory is exported as a descriptor; of what memory one is, 0 where that is unknown; the driver has taken one over. */
void references_export(uint64_t number, int descriptor);
uint64_t references_exported(int descriptor);
void references_disown(int descriptor);

/* The next memory of which a descriptor has been closed since; none where its bytes are 0. */
struct physical_memory references_sweep(void);

/* In the child of a fork. */
void references_forget_all(void);

#endif
