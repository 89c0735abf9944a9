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

/* A write, or a call of a function of the program's. */
struct write {
    uint32_t *word; /* NULL: `call` is called */
    uint32_t value;
    struct host_call call;
    uint64_t position; /* in the context's queue, behind the work before the write */
    uint64_t waits;    /* added to the context before the write */
};

struct stream_waits {
    struct stream_waits *next; /* in the list `all` */
    CUcontext context;         /* gone once `is_ended` */
    struct wait waits[WAITS];  /* the first wait holds the stream back */
    unsigned count;
    uint64_t passed; /* waits that were opened so far */
    struct write writes[WRITES];
    unsigned write_count;
    unsigned launches;    /* behind the first wait */
    uint32_t calls_asked; /* calls added so far; the work behind each waits until `calls_done` has its number */
    uint32_t calls_done;  /* atomic */
    bool is_calling;
    bool is_ending; /* no further call is made */
    bool has_thread;
    bool is_ended;
};

static struct stream_waits *all; /* of contexts that live */

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

static void drop_writes(struct stream_waits *waits, unsigned done) {
    waits->write_count -= done;
    for (unsigned i = 0; done > 0 && i < waits->write_count; i++) waits->writes[i] = waits->writes[i + done];
}

/* Up to the next call, which the context's own thread makes. */
static void do_writes(CUcontext context) {
    struct stream_waits *waits = context->waits;
    unsigned done = 0;
    while (done < waits->write_count && waits->writes[done].word && is_due(context, &waits->writes[done])) {
        __atomic_store_n(waits->writes[done].word, waits->writes[done].value, __ATOMIC_RELEASE);
        done++;
    }
    drop_writes(waits, done);
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

static void make_call(const struct host_call *call) {
    if (call->function)
        call->function(call->data);
    else
        call->callback(call->stream, CUDA_SUCCESS, call->data);
}

/* Makes the call whose turn has come, without the lock. */
static void make_call_if_due(struct stream_waits *waits) {
    if (waits->is_ending || waits->write_count == 0 || waits->writes[0].word ||
        !is_due(waits->context, &waits->writes[0]))
        return;
    struct host_call call = waits->writes[0].call;
    waits->is_calling = true;
    driver_unlock();
    make_call(&call);
    driver_lock();
    waits->is_calling = false;
    drop_writes(waits, 1);
    __atomic_fetch_add(&waits->calls_done, 1, __ATOMIC_RELEASE);
}

static void update_until_ended(struct stream_waits *waits) {
    HOLD_DRIVER();
    while (!waits->is_ended) {
        make_call_if_due(waits);
        if (waits->is_ended) return;
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
        context->waits->is_ending = true;
        while (context->waits->is_calling) sleep_once();
        struct stream_waits **link = &all;
        while (*link != context->waits) link = &(*link)->next;
        *link = context->waits->next;
        context->waits->is_ended = true;
        context->waits = NULL;
    }
}

static bool is_ready(CUcontext context) {
    if (!context->waits) {
        context->waits = calloc(1, sizeof *context->waits);
        if (!context->waits) return false;
        context->waits->context = context;
        context->waits->next = all;
        all = context->waits;
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

static void add_write(CUcontext context, struct write write) {
    struct stream_waits *waits = context->waits;
    update(context);
    while (waits->write_count == WRITES) {
        sleep_once();
        update(context);
    }
    write.position = last_position(context);
    write.waits = waits->passed + waits->count;
    waits->writes[waits->write_count++] = write;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the word is written later */
CUresult stream_waits_write(CUcontext context, uint32_t *word, uint32_t value) {
    if (!is_ready(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_write(context, (struct write){.word = word, .value = value});
    add_position(
        context); /* the write has been done when this position has passed, and stream_waits_do_writes was called */
    update(context);
    return CUDA_SUCCESS;
}

void stream_waits_do_writes(struct card_queue queue) {
    for (struct stream_waits *waits = all; waits; waits = waits->next)
        if (waits->context->queue.id == queue.id && waits->context->queue.card == queue.card) update(waits->context);
}

static void add_wait(CUcontext context, struct wait wait) {
    update(context);
    while (context->waits->count == WAITS) {
        sleep_once();
        update(context);
    }
    wait.position = last_position(context);
    context->waits->waits[context->waits->count++] = wait;
    if (context->waits->count == 1) card_queue_hold(context->queue, wait.position);
    add_position(context); /* events and writes behind the wait have a later position than the wait */
}

CUresult stream_waits_add(CUcontext context, const uint32_t *word, uint32_t value) {
    struct wait wait = {.word = word, .value = value};
    if (is_open(&wait)) return CUDA_SUCCESS;
    if (!is_ready(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_wait(context, wait);
    return CUDA_SUCCESS;
}

CUresult stream_waits_call(CUcontext context, struct host_call call) {
    if (!is_ready(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_write(context, (struct write){.call = call});
    struct stream_waits *waits = context->waits;
    add_wait(context, (struct wait){.word = &waits->calls_done, .value = ++waits->calls_asked});
    return CUDA_SUCCESS;
}
