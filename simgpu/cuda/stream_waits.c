#include "stream_waits.h"

#include "context_queue.h"
#include "driver.h"
#include "hardware/clock.h"

#include <pthread.h>
#include <stdlib.h>

/* Launches that a channel takes before the driver blocks the host, and functions that block: measured on an H200,
 * driver 580. */
enum { CHANNEL_LAUNCHES = 1020, WAITS = 256 };
#define POLL_NS      UINT64_C(20000)
#define IDLE_POLL_NS UINT64_C(200000)

struct wait {
    const uint32_t *word;
    uint32_t value;
    uint64_t position; /* in the context's queue, behind the work before the wait */
};

struct stream_waits {
    struct wait waits[WAITS]; /* the first is the one that holds back */
    unsigned count;
    unsigned launches; /* behind the first wait */
    bool has_thread;
    bool is_ended;
};

/* A cyclic comparison, as CU_STREAM_WAIT_VALUE_GEQ. */
static bool is_open(const struct wait *wait) {
    return (int32_t)(__atomic_load_n(wait->word, __ATOMIC_ACQUIRE) - wait->value) >= 0;
}

static void drop_first(struct stream_waits *waits) {
    waits->count--;
    for (unsigned i = 0; i < waits->count; i++) {
        waits->waits[i] = waits->waits[i + 1];
    }
}

/* Position 0 holds nothing back, so a wait before all work of the context holds back from 1 on. */
static void update(CUcontext context) {
    struct stream_waits *waits = context->waits;
    bool changed = false;
    while (waits->count > 0 && is_open(&waits->waits[0])) {
        drop_first(waits);
        changed = true;
    }
    if (changed) {
        waits->launches = waits->count > 0 ? waits->launches : 0;
        card_queue_hold(context->queue, waits->count > 0 ? waits->waits[0].position : 0);
    }
}

static bool is_closed(CUcontext context) {
    if (!context_is_alive(context) || context->waits == NULL) {
        return false;
    }
    update(context);
    return context->waits->count > 0;
}

static void sleep_once(void) { driver_sleep_until(clock_now_ns() + POLL_NS); }

void stream_waits_await_open(void) {
    CUcontext context;
    while (context_current(&context) == CUDA_SUCCESS && is_closed(context)) {
        sleep_once();
    }
}

void stream_waits_await_room(CUcontext context) {
    while (is_closed(context) && context->waits->launches >= CHANNEL_LAUNCHES) {
        sleep_once();
    }
}

void stream_waits_count_launch(CUcontext context) {
    if (context->waits != NULL && context->waits->count > 0) {
        context->waits->launches++;
    }
}

/* The card goes on when the value is written, also while the process calls no function of the driver's. */
static void *watch(void *argument) {
    CUcontext context = argument;
    driver_lock_take();
    struct stream_waits *waits = context->waits;
    while (!waits->is_ended) {
        update(context);
        driver_sleep_until(clock_now_ns() + (waits->count > 0 ? POLL_NS : IDLE_POLL_NS));
    }
    (void)driver_leave(CUDA_SUCCESS);
    free(waits);
    return NULL;
}

static bool start_thread(CUcontext context) {
    pthread_t thread;
    if (!context->waits->has_thread && pthread_create(&thread, NULL, watch, context) == 0) {
        (void)pthread_detach(thread);
        context->waits->has_thread = true;
    }
    return context->waits->has_thread;
}

void stream_waits_free(CUcontext context) {
    if (context->waits != NULL) {
        context->waits->is_ended = true;
        context->waits = NULL;
    }
}

CUresult stream_waits_add(CUcontext context, const uint32_t *word, uint32_t value) {
    struct wait wait = {.word = word, .value = value, .position = context->submitted > 0 ? context->submitted : 1};
    if (is_open(&wait)) {
        return CUDA_SUCCESS;
    }
    if (context->waits == NULL) {
        context->waits = calloc(1, sizeof *context->waits);
    }
    if (context->waits == NULL || !context_open_queue(context) || !start_thread(context)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    update(context);
    while (context->waits->count == WAITS) {
        sleep_once();
        update(context);
    }
    context->waits->waits[context->waits->count++] = wait;
    if (context->waits->count == 1) {
        card_queue_hold(context->queue, wait.position);
    }
    return CUDA_SUCCESS;
}
