#include "process/lock.h"

#include "process/mutex.h"

/* Each mutex has a cache line of its own, so that threads with different locks cause no false sharing. */
static struct {
    struct mutex mutex;
} __attribute__((aligned(64))) locks[LOCKS];

#ifdef VGPU_CHECK_LOCKS
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __thread uint32_t held; /* bit n: this thread holds lock n of `enum lock` */

static_assert(LOCKS <= 32, "one bit of `held` per lock");

void lock_note_taken(enum lock lock) {
    if (held >> lock) {
        (void)fprintf(stderr, "lock order: lock %d is taken while locks 0x%x are held (process/lock.h)\n", (int)lock,
                      held);
        abort();
    }
    held |= 1U << lock;
}

void lock_note_released(enum lock lock) { held &= ~(1U << lock); }
#endif

void lock_take(enum lock lock) {
    lock_note_taken(lock);
    mutex_lock(&locks[lock].mutex);
}

void lock_release(enum lock lock) {
    mutex_unlock(&locks[lock].mutex);
    lock_note_released(lock);
}

void lock_take_all(void) {
    for (int lock = 0; lock < LOCKS; lock++) lock_take((enum lock)lock);
}

void lock_release_all(void) {
    for (int lock = LOCKS - 1; lock >= 0; lock--) lock_release((enum lock)lock);
}
