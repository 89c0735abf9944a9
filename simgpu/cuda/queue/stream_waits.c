#include "cuda/queue/stream_waits.h"

#include <pthread.h>
#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "cuda/queue/context_queue.h"
#include "hardware/clock.h"

/* Launches that a channel takes before the driver blocks the host, and functions that block: measured on an H200,
 * driver 580. */
enum { CHANNEL_LAUNCHES = 1020, WAITS = 256, WRITES = 256 };
#define POLL_NS      UINT64_C(20000)
#define IDLE_POLL_NS UINT64_C(200000)

struct wait {
    const uint32_t *word;
    uint32_t value;
    uint64_t position; /* in the context's queue, behind the work before the wait */
};

struct write {
    uint32_t *word;
    uint32_t value;
    uint64_t position; /* in the context's queue, behind the work before the write */
    uint64_t waits;    /* added to the context before the write */
};

struct stream_waits {
    CUcontext context;        /* gone once `is_ended` */
    struct wait waits[WAITS]; /* the first is the one that holds back */
    unsigned count;
    uint64_t passed; /* waits that were opened so far */
    struct write writes[WRITES];
    unsigned write_count;
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
    waits->passed++;
    for (unsigned i = 0; i < waits->count; i++) waits->waits[i] = waits->waits[i + 1];
}

static bool is_due(CUcontext context, const struct write *write) {
    return context->waits->passed >= write->waits && queue_passed(context->queue, write->position);
}

static void do_writes(CUcontext context) {
    struct stream_waits *waits = context->waits;
    unsigned done = 0;
    while (done < waits->write_count && is_due(context, &waits->writes[done])) {
        __atomic_store_n(waits->writes[done].word, waits->writes[done].value, __ATOMIC_RELEASE);
        done++;
    }
    waits->write_count -= done;
    for (unsigned i = 0; done > 0 && i < waits->write_count; i++) waits->writes[i] = waits->writes[i + done];
}

static void update(CUcontext context) {
    struct stream_waits *waits = context->waits;
    bool has_changed = false;
    while (waits->count > 0 && is_open(&waits->waits[0])) {
        drop_first(waits);
        has_changed = true;
    }
    if (has_changed) {
        waits->launches = waits->count > 0 ? waits->launches : 0;
        card_queue_hold(context->queue, waits->count > 0 ? waits->waits[0].position : 0);
    }
    do_writes(context);
}

static bool is_closed(CUcontext context) {
    if (!context_is_alive(context) || !context->waits) return false;
    update(context);
    return context->waits->count > 0;
}

static void sleep_once(void) { driver_sleep_until(clock_now_ns() + POLL_NS); }

void stream_waits_await_open(void) {
    CUcontext context;
    while (context_current(&context) == CUDA_SUCCESS && is_closed(context)) sleep_once();
}

void stream_waits_await_room(CUcontext context) {
    while (is_closed(context) && context->waits->launches >= CHANNEL_LAUNCHES) sleep_once();
}

void stream_waits_count_launch(CUcontext context) {
    if (context->waits && context->waits->count > 0) context->waits->launches++;
}

static void update_until_ended(struct stream_waits *waits) {
    HOLD_DRIVER();
    while (!waits->is_ended) {
        update(waits->context);
        bool is_used = waits->count > 0 || waits->write_count > 0;
        driver_sleep_until(clock_now_ns() + (is_used ? POLL_NS : IDLE_POLL_NS));
    }
}

/* The card goes on when the value is written, also while the process calls no function of the driver's. */
static void *watch(void *waits) {
    update_until_ended(waits);
    free(waits);
    return NULL;
}

static bool start_thread(CUcontext context) {
    pthread_t thread;
    if (!context->waits->has_thread && pthread_create(&thread, NULL, watch, context->waits) == 0) {
        pthread_detach(thread);
        context->waits->has_thread = true;
    }
    return context->waits->has_thread;
}

void stream_waits_free(CUcontext context) {
    if (context->waits) {
        context->waits->is_ended = true;
        context->waits = NULL;
    }
}

static bool is_ready(CUcontext context) {
    if (!context->waits) {
        context->waits = calloc(1, sizeof *context->waits);
        if (!context->waits) return false;
        context->waits->context = context;
    }
    return context_open_queue(context) && start_thread(context);
}

static void add_position(CUcontext context) {
    uint64_t runs;
    context->submitted = card_queue_add(context->queue, 1, &runs);
}

/* The position behind all work of the context. Position 0 holds nothing back, so an empty context gets one of its own.
 */
static uint64_t last_position(CUcontext context) {
    if (context->submitted == 0) add_position(context);
    return context->submitted;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the word is written later */
CUresult stream_waits_write(CUcontext context, uint32_t *word, uint32_t value) {
    if (!is_ready(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    struct stream_waits *waits = context->waits;
    update(context);
    while (waits->write_count == WRITES) {
        sleep_once();
        update(context);
    }
    waits->writes[waits->write_count++] =
        (struct write){word, value, last_position(context), waits->passed + waits->count};
    update(context);
    return CUDA_SUCCESS;
}

CUresult stream_waits_add(CUcontext context, const uint32_t *word, uint32_t value) {
    struct wait wait = {.word = word, .value = value};
    if (is_open(&wait)) return CUDA_SUCCESS;
    if (!is_ready(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    update(context);
    while (context->waits->count == WAITS) {
        sleep_once();
        update(context);
    }
    wait.position = last_position(context);
    context->waits->waits[context->waits->count++] = wait;
    if (context->waits->count == 1) card_queue_hold(context->queue, wait.position);
    add_position(context); /* events and writes behind the wait have a later position than the wait */
    return CUDA_SUCCESS;
}
