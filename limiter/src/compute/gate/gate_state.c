#include "compute/gate/gate_state.h"

#include <limits.h>

#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/link/container_turn.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "process/fork.h"
#include "region/linked_cards.h"

static struct gate *gates[GATES]; /* atomic; set once by compare-and-swap */
static bool is_used;              /* atomic */
static unsigned gate_count;       /* atomic */

void gate_note_used(void) { __atomic_store_n(&is_used, true, __ATOMIC_RELEASE); }

bool gate_is_used(void) { return __atomic_load_n(&is_used, __ATOMIC_ACQUIRE); }

bool gate_are_several(void) { return gate_is_used() && __atomic_load_n(&gate_count, __ATOMIC_RELAXED) > 1; }

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
        __atomic_fetch_add(&gate_count, 1, __ATOMIC_RELAXED);
        return created;
    }
    system_unmap(created, sizeof *created);
    return gate;
}

void gate_note_change(struct gate *gate) {
    __atomic_fetch_add(&gate->changes, 1, __ATOMIC_RELEASE);
    if (gate->waiters) system_futex_wake(&gate->changes, INT_MAX, FUTEX_PRIVATE_FLAG);
}

static bool works(const struct gate *gate, uint64_t now) {
    return gate && __atomic_load_n(&gate->works_until, __ATOMIC_RELAXED) > now;
}

bool gate_is_work_elsewhere(unsigned index) {
    uint64_t now = clock_now();
    for (int i = 0; i < GATES; i++)
        if (i != (int)index && works(gate_at(i), now)) return true;
    return false;
}

bool gate_is_work_on(unsigned index) { return works(gate_at((int)index), clock_now()); }

bool gate_is_late(unsigned index) {
    const struct gate *gate = gate_at((int)index);
    uint64_t now = clock_now(), until = gate ? __atomic_load_n(&gate->works_until, __ATOMIC_RELAXED) : 0;
    return until > now && until - now < GATE_WORK_TIMEOUT - REGION_LINKED_LATE_AFTER_NS;
}

struct gate *gate_of_current_context(void) {
    CUdevice device;
    return REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? gate_ensure(device) : NULL;
}

struct region_activity *gate_activity(void) {
    const struct gate *gate = gate_is_used() ? gate_of_current_context() : NULL;
    return gate ? container_turn_activity(&gate->request) : NULL;
}
