/* Memory of a card that several processes may hold.
 *
 * It stays on the card while any living process holds it, or while a file descriptor of it is open anywhere. A process
 * may hold it several times. */
#ifndef SIMGPU_LEDGER_SHARED_MEMORY_H
#define SIMGPU_LEDGER_SHARED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/cards.h"

struct shared_memory {
    uint64_t id;
    uint64_t bytes;
    char uuid[UUID_SIZE]; /* of the card */
};

/* How a process holds shared memory: whether NVML counts the memory with that process (measured on an H200, driver
 * 580). */
enum attribution {
    UNATTRIBUTED,           /* never */
    ATTRIBUTED,             /* always */
    ATTRIBUTED_WHEN_CLOSED, /* while no descriptor of the memory is open */
    ATTRIBUTIONS
};

/* Makes shared memory out of bytes that this process holds on the card; this process then holds it once, ATTRIBUTED.
 * Open descriptors of the shared memory `parent_id`, if not 0, hold it too. Returns its id, which is never used again;
 * 0 when there is no room. */
uint64_t shared_memory_create(const char *uuid, uint64_t bytes, uint64_t parent_id);
/* Lowers its size to `bytes`; does nothing when it is not larger. */
void shared_memory_shrink(uint64_t id, uint64_t bytes);
/* Adds one hold of this process and describes the memory. Returns false when the memory is freed, because no process
 * held it. */
bool shared_memory_hold(uint64_t id, enum attribution attribution, struct shared_memory *out);
/* Removes one hold of this process. */
void shared_memory_drop(uint64_t id, enum attribution attribution);
/* Whether this process made it. */
bool shared_memory_is_own(uint64_t id);

/* Opens a file descriptor of it, or returns a negative errno. Each copy of the descriptor holds the memory until it is
 * closed, in whichever process. */
int shared_memory_open_descriptor(uint64_t id);
/* The id of the shared memory whose descriptor `fd` is; 0 when it is none. */
uint64_t shared_memory_of_descriptor(int fd);

/* For the other files of the ledger, under the file's lock. */

/* Sum of the bytes on a card: of every entry, or only of those that a living process or an open descriptor holds. */
uint64_t shared_memory_sum(int card, bool held_only);
/* Bytes that NVML counts with the slot's process: memory is counted with its exporter while the exporter holds it
 * attributed, else with the living holder of the lowest slot that does. */
uint64_t shared_memory_attributed(uint32_t slot, int card);
/* Removes all holds of a dead process. */
void shared_memory_forget(uint32_t slot);
/* Frees the entries that no living process and no open descriptor holds. */
void shared_memory_reap(void);
/* Forgets the holds that this process counts: in a child of fork, and before another ledger is used. */
void shared_memory_reset(void);

#endif
