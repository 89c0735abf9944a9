#include "books/arrays/array_chunks.h"

#include <string.h>

#include "books/pointers/pointers.h"
#include "process/fork.h"
#include "process/lock.h"

/* Devices beyond this number share the last element of `devices`. */
enum { DEVICES = 64 };

/* Surplus charge in bytes from which a measurement is worth its 30 us. */
#define SURPLUS_TO_MEASURE (16ULL << 20)

/* The chunks of a device's small arrays. Under LOCK_ARRAY_CHUNKS. */
static struct device_chunks {
    uint64_t charged;     /* bytes, in whole chunks */
    uint64_t used;        /* bytes that the living arrays require */
    uint64_t room;        /* bytes left in the chunk that was charged last */
    uint32_t corrections; /* account_corrections when these fields were last used */
    bool is_estimate;     /* a measurement has changed the process's charge, so `charged` is an estimate */
} devices[DEVICES];

static void forget(void) { memset(devices, 0, sizeof devices); }
FORGET_IN_CHILD(forget);

static struct device_chunks *chunks_of(int device) {
    return &devices[device >= 0 && device < DEVICES ? device : DEVICES - 1];
}

static uint64_t whole_chunks(uint64_t bytes) { return (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY; }

/* The chunks of a device. If a measurement has changed the process's charge, they are estimated anew, without `room`:
 * the measurement may have released the last chunk's charge, because the driver had room in another chunk. */
static struct device_chunks *current_chunks(int device, uint32_t corrections) {
    struct device_chunks *chunks = chunks_of(device);
    if (chunks->corrections == corrections) return chunks;
    chunks->corrections = corrections;
    chunks->room = 0;
    chunks->charged = whole_chunks(chunks->used);
    chunks->is_estimate = chunks->used != 0;
    return chunks;
}

bool array_chunks_join(int device, uint64_t bytes, uint32_t corrections) {
    HOLD_LOCK(LOCK_ARRAY_CHUNKS);
    struct device_chunks *chunks = current_chunks(device, corrections);
    bool fits = bytes <= chunks->room;
    if (fits) {
        chunks->room -= bytes;
        chunks->used += bytes;
    }
    return fits;
}

void array_chunks_add(int device, uint64_t bytes, uint32_t corrections) {
    HOLD_LOCK(LOCK_ARRAY_CHUNKS);
    struct device_chunks *chunks = current_chunks(device, corrections);
    chunks->charged += GRANULARITY;
    chunks->used += bytes;
    if (chunks->room < GRANULARITY - bytes) chunks->room = GRANULARITY - bytes;
}

static uint64_t take_surplus(struct device_chunks *chunks) {
    uint64_t surplus = chunks->charged - whole_chunks(chunks->used);
    chunks->charged -= surplus;
    return surplus;
}

static struct array_chunks_removal end_charge(struct device_chunks *chunks, bool is_measurable) {
    bool is_last = chunks->used == 0;
    if (!is_measurable || (is_last && !chunks->is_estimate))
        return (struct array_chunks_removal){take_surplus(chunks), false};
    return (struct array_chunks_removal){0,
                                         is_last || chunks->charged - whole_chunks(chunks->used) >= SURPLUS_TO_MEASURE};
}

/* Clears `room`, because it is unknown which chunk the array was in and whether the driver has freed that chunk. */
struct array_chunks_removal array_chunks_remove(int device, uint64_t bytes, uint32_t corrections, bool is_measurable) {
    HOLD_LOCK(LOCK_ARRAY_CHUNKS);
    struct device_chunks *chunks = current_chunks(device, corrections);
    chunks->used -= bytes;
    chunks->room = 0;
    return end_charge(chunks, is_measurable);
}
