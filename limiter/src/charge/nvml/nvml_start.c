#include "charge/nvml/nvml_start.h"

#include <errno.h>
#include <string.h>

#include "charge/nvml/nvml_usage.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "loader/libc.h"
#include "process/fork.h"
#include "process/quiet_thread.h"

/* How long nvml_start_finish waits for a thread that has not reached NVML. It has in general, long before the context
 * is made. */
#define START_MAX     (10 * NS_PER_MS)
#define LOOK_INTERVAL (50 * NS_PER_US)

enum phase { NOT_STARTED, STARTING, INITIALISING, DONE, GIVEN_UP };

static enum phase phase;             /* atomic */
static int thread_id;                /* of the thread; written before the phase INITIALISING */
static uint8_t card_uuid[UUID_SIZE]; /* of the first context; written before the thread starts */

static void forget(void) { phase = NOT_STARTED; }
FORGET_IN_CHILD(forget);

static bool change(enum phase from, enum phase to) {
    return __atomic_compare_exchange_n(&phase, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Waits for the loader's lock. The constructor of a library may make a context; the loader holds the lock until it has
 * returned. If the thread came to need the lock inside NVML meanwhile, both would wait for ever; so it passes the lock
 * before it is waited for. */
static void pass_loader_lock(void) {
    void *program = LIBC(dlopen)(NULL, RTLD_LAZY);
    if (program) LIBC(dlclose)(program);
}

static void look_at_card(void) {
    struct nvml_usage usage;
    if (nvml_usage_read(card_uuid, &usage)) nvml_usage_free(&usage);
}

static void *initialise(void *unused) {
    (void)unused;
    pass_loader_lock();
    if (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == STARTING) thread_id = system_thread_id();
    if (!change(STARTING, INITIALISING)) return NULL;
    nvml_usage_start();
    look_at_card();
    change(INITIALISING, DONE);
    return NULL;
}

struct nvml_start nvml_start_begin(const uint8_t uuid[UUID_SIZE]) {
    struct nvml_start start = {0};
    if (!change(NOT_STARTED, STARTING)) return start;
    memcpy(card_uuid, uuid, UUID_SIZE);
    start.has_thread = quiet_thread_start(0, initialise, NULL);
    return start;
}

static bool has_reached_nvml(void) {
    uint64_t give_up_at = clock_now() + START_MAX;
    while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == STARTING && clock_now() < give_up_at)
        system_sleep(LOOK_INTERVAL);
    return !change(STARTING, GIVEN_UP);
}

/* pthread_join() is a cancellation point, and may be another library's function. */
static void await_end(void) {
    while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == INITIALISING) system_sleep(LOOK_INTERVAL);
    uint64_t give_up_at = clock_now() + START_MAX;
    while (system_thread_exists(thread_id) && clock_now() < give_up_at) system_sleep(LOOK_INTERVAL);
}

void nvml_start_finish(const struct nvml_start *start) {
    if (start->has_thread && has_reached_nvml()) await_end();
    nvml_usage_start();
}
