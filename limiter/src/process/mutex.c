#include "process/mutex.h"

#include "common/arithmetic.h"
#include "common/system_calls.h"

enum { FREE, HELD, CONTENDED };

/* The wait ends by mutex_unlock; its bound only keeps it from being for ever. */
#define WAIT_MAX NS_PER_SECOND

bool mutex_try_lock(struct mutex *mutex) {
    uint32_t free = FREE;
    return __atomic_compare_exchange_n(&mutex->state, &free, HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* A thread that has waited takes the mutex as CONTENDED: it cannot know whether others still wait. */
void mutex_lock(struct mutex *mutex) {
    if (mutex_try_lock(mutex)) return;
    while (__atomic_exchange_n(&mutex->state, CONTENDED, __ATOMIC_ACQUIRE) != FREE)
        system_futex_wait(&mutex->state, CONTENDED, WAIT_MAX, FUTEX_PRIVATE_FLAG);
}

void mutex_unlock(struct mutex *mutex) {
    if (__atomic_exchange_n(&mutex->state, FREE, __ATOMIC_RELEASE) == CONTENDED)
        system_futex_wake(&mutex->state, 1, FUTEX_PRIVATE_FLAG);
}
