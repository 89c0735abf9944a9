#include "books/pool_guard.h"

#include <stdbool.h>
#include <time.h>

#include "process/fork.h"
#include "process/lock.h"

enum { PAUSE_NS = 10000 };

static unsigned users; /* atomically */
static bool is_ending; /* atomically, under the mutex when written */

static void forget(void) {
    users = 0;
    is_ending = false;
}
FORGET_IN_CHILD(forget);

void pool_guard_leave(void) { __atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST); }

/* Both sides say what they do before they look what the other does. */
static bool try_enter(void) {
    __atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&is_ending, __ATOMIC_SEQ_CST)) return true;
    pool_guard_leave();
    return false;
}

void pool_guard_enter(void) {
    while (!try_enter()) {
        lock_take(LOCK_POOL_GUARD);
        lock_release(LOCK_POOL_GUARD);
    }
}

void pool_guard_begin_destroy(void) {
    lock_take(LOCK_POOL_GUARD);
    __atomic_store_n(&is_ending, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&users, __ATOMIC_SEQ_CST) != 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

void pool_guard_end_destroy(void) {
    __atomic_store_n(&is_ending, false, __ATOMIC_SEQ_CST);
    lock_release(LOCK_POOL_GUARD);
}
