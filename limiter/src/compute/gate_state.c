#include "compute/gate_state.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "process/fork.h"
#include "process/lock.h"

/* CLOSED_TIMEOUT: how long gate_await_closed waits; LAUNCHES_TIMEOUT: how long gate_await_launches waits. A launch may
 * stay in the driver until the program makes another one, so both waits have a bound. */
#define CLOSED_TIMEOUT   (1000 * NS_PER_MS)
#define LAUNCHES_TIMEOUT (100 * NS_PER_MS)

static struct gate *gates[GATES]; /* atomic; set once by compare-and-swap */
static bool is_used;              /* atomic */

void gate_note_used(void) { __atomic_store_n(&is_used, true, __ATOMIC_RELEASE); }

bool gate_is_used(void) { return __atomic_load_n(&is_used, __ATOMIC_ACQUIRE); }

static void forget(void) { is_used = false; }
FORGET_IN_CHILD(forget);

static bool is_device(int device) { return device >= 0 && device < GATES; }

struct gate *gate_at(int device) {
    return is_device(device) ? __atomic_load_n(&gates[device], __ATOMIC_ACQUIRE) : NULL;
}

static struct gate *create(int device) {
    struct gate *gate = calloc(1, sizeof *gate);
    if (gate) gate->index = (unsigned)device;
    if (!gate || cards_of_device(device, gate->request.uuid)) return gate;
    free(gate);
    return NULL;
}

struct gate *gate_ensure(int device) {
    struct gate *gate = gate_at(device);
    if (gate || !is_device(device)) return gate;
    struct gate *created = create(device);
    if (!created ||
        __atomic_compare_exchange_n(&gates[device], &gate, created, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return created;
    free(created);
    return gate;
}

void gate_lock(struct gate *gate) {
    lock_note_taken(LOCK_GATE);
    pthread_mutex_lock(&gate->mutex);
}

void gate_unlock(struct gate *gate) {
    pthread_mutex_unlock(&gate->mutex);
    lock_note_released(LOCK_GATE);
}

struct turn_limits gate_take_turn(struct gate *gate) {
    RELEASE_GATE(gate);
    return turn_request_take(&gate->request);
}

/* A futex of its own: pthread_cond_timedwait() is a cancellation point, and waits by the wall clock, which may be set
 * back, unless the condition variable is initialised for another clock. */
void gate_await_change(struct gate *gate, uint64_t ns) {
    struct timespec timeout = clock_timespec(ns);
    uint32_t seen = gate->changes;
    gate->waiters++;
    {
        RELEASE_GATE(gate);
        syscall(SYS_futex, &gate->changes, FUTEX_WAIT_PRIVATE, seen, &timeout, NULL, 0);
    }
    gate->waiters--;
}

void gate_note_change(struct gate *gate) {
    __atomic_fetch_add(&gate->changes, 1, __ATOMIC_RELEASE);
    if (gate->waiters) syscall(SYS_futex, &gate->changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void gate_set_phase(struct gate *gate, enum phase phase) {
    gate->phase = phase;
    gate_note_change(gate);
}

struct gate *gate_of_current_context(void) {
    CUdevice device;
    return REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? gate_ensure(device) : NULL;
}

struct region_activity *gate_activity(void) {
    const struct gate *gate = gate_is_used() ? gate_of_current_context() : NULL;
    return gate ? turn_request_activity(&gate->request) : NULL;
}

bool gate_await_launches(struct gate *gate) {
    uint64_t until = clock_now() + LAUNCHES_TIMEOUT;
    while (gate->launches_in_driver && clock_now() < until) {
        gate->are_launches_awaited = true;
        gate_await_change(gate, NS_PER_MS);
    }
    return gate->launches_in_driver == 0;
}

void gate_note_left_driver(struct gate *gate) {
    gate->launches_in_driver--;
    if (gate->launches_in_driver || !gate->are_launches_awaited) return;
    gate->are_launches_awaited = false;
    gate_note_change(gate);
}

bool gate_await_closed(struct gate *gate) {
    uint64_t until = clock_now() + CLOSED_TIMEOUT;
    while (gate->phase == CLOSING && clock_now() < until) gate_await_change(gate, NS_PER_MS * 10);
    return gate->phase != CLOSING;
}
