#include "shelves.h"

#include <pthread.h>
#include <string.h>

#include "holdings.h"

/* Devices beyond these share the last shelf. */
enum { SHELVES = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shelf { /* under the mutex */
    uint64_t charged;
    uint64_t held;
    uint64_t room; /* in the chunk that was charged last */
    uint32_t measured;
} shelves[SHELVES];

void shelves_lock(void) { pthread_mutex_lock(&mutex); }

void shelves_unlock(void) { pthread_mutex_unlock(&mutex); }

void shelves_forget_all(void) { memset(shelves, 0, sizeof shelves); }

static struct shelf *of(int device) { return &shelves[device >= 0 && device < SHELVES ? device : SHELVES - 1]; }

static uint64_t chunks(uint64_t bytes) { return (bytes + GRANULE - 1) / GRANULE * GRANULE; }

/* A measurement has taken the last chunk's charge back where the driver had room in another. */
static struct shelf *since(int device, uint32_t measured) {
    struct shelf *shelf = of(device);
    if (shelf->measured != measured) shelf->room = 0;
    shelf->measured = measured;
    return shelf;
}

bool shelves_join(int device, uint64_t bytes, uint32_t measured) {
    shelves_lock();
    struct shelf *shelf = since(device, measured);
    bool fits = bytes <= shelf->room;
    if (fits) {
        shelf->room -= bytes;
        shelf->held += bytes;
    }
    shelves_unlock();
    return fits;
}

void shelves_add(int device, uint64_t bytes, uint32_t measured) {
    shelves_lock();
    struct shelf *shelf = since(device, measured);
    shelf->charged += GRANULE;
    shelf->held += bytes;
    if (shelf->room < GRANULE - bytes) shelf->room = GRANULE - bytes;
    shelves_unlock();
}

/* Which chunk it was in, and whether that is gone with it, is not known: nothing more is put into any. */
uint64_t shelves_remove(int device, uint64_t bytes) {
    shelves_lock();
    struct shelf *shelf = of(device);
    shelf->held -= bytes;
    shelf->room = 0;
    uint64_t spare = shelf->charged - chunks(shelf->held);
    shelf->charged -= spare;
    shelves_unlock();
    return spare;
}
