#include "books/pools/pool_guard.h"

#include <stdbool.h>

#include "common/system_calls.h"
#include "process/fork.h"
#include "process/lock.h"

/* Interval at which a destroying thread checks whether readers are left. */
enum { POLL_INTERVAL_NS = 10000 };

static unsigned readers;   /* atomic: threads inside */
static bool is_destroying; /* atomic, written under LOCK_POOL_GUARD */

static void forget(void) {
    readers = 0;
    is_destroying = false;
}
FORGET_IN_CHILD(forget);

void pool_guard_leave(void) { __atomic_fetch_sub(&readers, 1, __ATOMIC_SEQ_CST); }

/* Reader and destroyer each announce themselves before they check for the other, so at least one of them sees the
 * other: hence the sequentially consistent order. */
static bool try_enter(void) {
    __atomic_fetch_add(&readers, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&is_destroying, __ATOMIC_SEQ_CST)) return true;
    pool_guard_leave();
    return false;
}

static void await_destruction(void) { HOLD_LOCK(LOCK_POOL_GUARD); }

void pool_guard_enter(void) {
    while (!try_enter()) await_destruction();
}

void pool_guard_begin_destroy(void) {
    lock_take(LOCK_POOL_GUARD);
    __atomic_store_n(&is_destroying, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&readers, __ATOMIC_SEQ_CST) != 0) system_sleep(POLL_INTERVAL_NS);
}

void pool_guard_end_destroy(void) {
    __atomic_store_n(&is_destroying, false, __ATOMIC_SEQ_CST);
    lock_release(LOCK_POOL_GUARD);
}
