#include "books/array_chunks.h"

#include <string.h>

#include "books/pointers.h"
#include "process/fork.h"
#include "process/lock.h"

/* Devices beyond these share the last shelf. */
enum { SHELVES = 64 };

/* So much may be charged too much. */
#define SURPLUS (16ULL << 20)

static struct shelf { /* under the mutex */
    uint64_t charged;
    uint64_t held;
    uint64_t room; /* in the chunk that was charged last */
    uint32_t measured;
    bool is_mixed; /* a measurement has changed what is charged: how much of it is for these, nobody knows */
} shelves[SHELVES];

static void forget(void) { memset(shelves, 0, sizeof shelves); }
FORGET_IN_CHILD(forget);

static struct shelf *of(int device) { return &shelves[device >= 0 && device < SHELVES ? device : SHELVES - 1]; }

static uint64_t chunks(uint64_t bytes) { return (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY; }

/* A measurement may have taken the last chunk's charge back where the driver had room in another. */
static struct shelf *since(int device, uint32_t measured) {
    struct shelf *shelf = of(device);
    if (shelf->measured == measured) return shelf;
    shelf->measured = measured;
    shelf->room = 0;
    shelf->charged = chunks(shelf->held);
    shelf->is_mixed = shelf->held != 0;
    return shelf;
}

bool array_chunks_join(int device, uint64_t bytes, uint32_t measured) {
    lock_take(LOCK_ARRAY_CHUNKS);
    struct shelf *shelf = since(device, measured);
    bool fits = bytes <= shelf->room;
    if (fits) {
        shelf->room -= bytes;
        shelf->held += bytes;
    }
    lock_release(LOCK_ARRAY_CHUNKS);
    return fits;
}

void array_chunks_add(int device, uint64_t bytes, uint32_t measured) {
    lock_take(LOCK_ARRAY_CHUNKS);
    struct shelf *shelf = since(device, measured);
    shelf->charged += GRANULARITY;
    shelf->held += bytes;
    if (shelf->room < GRANULARITY - bytes) shelf->room = GRANULARITY - bytes;
    lock_release(LOCK_ARRAY_CHUNKS);
}

static uint64_t take_surplus(struct shelf *shelf) {
    uint64_t spare = shelf->charged - chunks(shelf->held);
    shelf->charged -= spare;
    return spare;
}

static struct array_chunks_removal end(struct shelf *shelf, bool is_measurable) {
    bool is_last = shelf->held == 0;
    if (!is_measurable || (is_last && !shelf->is_mixed))
        return (struct array_chunks_removal){take_surplus(shelf), false};
    return (struct array_chunks_removal){0, is_last || shelf->charged - chunks(shelf->held) >= SURPLUS};
}

/* Which chunk it was in, and whether that is gone with it, is not known: nothing more is put into any. */
struct array_chunks_removal array_chunks_remove(int device, uint64_t bytes, uint32_t measured, bool is_measurable) {
    lock_take(LOCK_ARRAY_CHUNKS);
    struct shelf *shelf = since(device, measured);
    shelf->held -= bytes;
    shelf->room = 0;
    struct array_chunks_removal ended = end(shelf, is_measurable);
    lock_release(LOCK_ARRAY_CHUNKS);
    return ended;
}
