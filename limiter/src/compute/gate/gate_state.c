#include "compute/gate/gate_state.h"

#include <limits.h>

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
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

/* AddressSanitizer finds what is referenced from a gate only in memory that it knows. */
#if defined(__SANITIZE_ADDRESS__)
void __lsan_register_root_region(const void *first, size_t size);
static void note_memory(const struct gate *gate) { __lsan_register_root_region(gate, sizeof *gate); }
#else
static void note_memory(const struct gate *gate) { (void)gate; }
#endif

/* Not by calloc(), which a library that a program loads before this one may replace: a card without a gate has no limit
 * of time. */
static struct gate *create(int device) {
    struct gate *gate = system_map(sizeof *gate, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (gate == MAP_FAILED) return NULL;
    gate->index = (unsigned)device;
    if (cards_of_device(device, gate->request.uuid)) return gate;
    system_unmap(gate, sizeof *gate);
    return NULL;
}

struct gate *gate_ensure(int device) {
    struct gate *gate = gate_at(device);
    if (gate || !is_device(device)) return gate;
    struct gate *created = create(device);
    if (!created) return NULL;
    if (__atomic_compare_exchange_n(&gates[device], &gate, created, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        note_memory(created);
        return created;
    }
    system_unmap(created, sizeof *created);
    return gate;
}

void gate_lock(struct gate *gate) {
    lock_note_taken(LOCK_GATE);
    mutex_lock(&gate->mutex);
}

void gate_unlock(struct gate *gate) {
    mutex_unlock(&gate->mutex);
    lock_note_released(LOCK_GATE);
}

struct turn_limits gate_take_turn(struct gate *gate) {
    RELEASE_GATE(gate);
    return turn_request_take(&gate->request);
}

/* A futex of its own: pthread_cond_timedwait() is a cancellation point, and waits by the wall clock, which may be set
 * back, unless the condition variable is initialised for another clock. */
void gate_await_change(struct gate *gate, uint64_t ns) {
    uint32_t seen = gate->changes;
    gate->waiters++;
    {
        RELEASE_GATE(gate);
        system_futex_wait(&gate->changes, seen, ns, FUTEX_PRIVATE_FLAG);
    }
    gate->waiters--;
}

void gate_note_change(struct gate *gate) {
    __atomic_fetch_add(&gate->changes, 1, __ATOMIC_RELEASE);
    if (gate->waiters) system_futex_wake(&gate->changes, INT_MAX, FUTEX_PRIVATE_FLAG);
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
