#include "cuda/queue/stream_waits.h"

#include <pthread.h>
#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/stream_order.h"
#include "cuda/queue/stream_state.h"
#include "hardware/clock.h"

/* Launches that a channel takes before the driver blocks the host, and functions that block: measured on an H200,
 * driver 580. */
enum { CHANNEL_LAUNCHES = 1020, WAITS = 256, WRITES = 256 };
#define POLL_NS      UINT64_C(20000)
#define IDLE_POLL_NS UINT64_C(200000)

/* For a value, or for an event. */
struct wait {
    const uint32_t *word; /* NULL: for an event */
    uint32_t value;
    bool is_kernel;     /* a kernel that spins; else the stream waits, which also blocks some functions of the driver */
    uint32_t *given_up; /* of a kernel that spins for `timeout` ns at most: the word, in which it then writes */
    uint64_t timeout;
    uint64_t until; /* when it gives up; 0 = it has not begun */
    struct card_queue event_queue;
    uint64_t event_position;
    uint64_t position; /* in the channel's queue, behind the work before the wait */
};

/* A write, or a call of a function of the program's. */
struct write {
    uint32_t *word; /* NULL: `call` is called */
    uint32_t value;
    struct host_call call;
    uint64_t position; /* in the channel's queue, behind the work before the write */
    uint64_t waits;    /* added to the channel before the write */
    uint64_t number;   /* of all writes of the process */
};

struct channel_waits {
    struct wait waits[WAITS]; /* the first wait holds the channel back */
    unsigned count;
    uint64_t passed; /* waits that were opened so far */
    struct write writes[WRITES];
    unsigned write_count;
    unsigned launches;    /* behind the first wait */
    uint32_t calls_asked; /* calls added so far; the work behind each waits until `calls_done` has its number */
    uint32_t calls_done;  /* atomic */
};

struct stream_waits {
    struct stream_waits *next; /* in the list `all` */
    CUcontext context;         /* gone once `is_ended` */
    struct channel_waits of[TIMELINE_CHANNELS];
    bool is_calling;
    bool is_ending; /* no further call is made */
    bool has_thread;
    bool is_ended;
};

static struct stream_waits *all; /* of contexts that live */
static uint64_t writes_added;

static struct channel_waits *waits_of(CUcontext context, const struct channel *channel) {
    return &context->waits->of[channel - context->channel];
}

/* Of a value, by a cyclic comparison, as CU_STREAM_WAIT_VALUE_GEQ. */
static bool is_open(const struct wait *wait) {
    if (!wait->word) return queue_passed(wait->event_queue, wait->event_position);
    return (int32_t)(__atomic_load_n(wait->word, __ATOMIC_ACQUIRE) - wait->value) >= 0;
}

/* A kernel that spins begins when the work before it is done. */
static void give_up_if_due(const struct channel *channel, struct wait *first) {
    if (!first->timeout || !queue_passed(channel->queue, first->position)) return;
    uint64_t now = clock_now_ns();
    if (first->until == 0) first->until = now + first->timeout;
    if (now >= first->until) __atomic_store_n(first->given_up, first->value + 1, __ATOMIC_RELEASE);
}

static void drop_first(struct channel_waits *waits) {
    waits->count--;
    waits->passed++;
    for (unsigned i = 0; i < waits->count; i++) waits->waits[i] = waits->waits[i + 1];
}

static bool is_due(const struct channel *channel, const struct channel_waits *waits) {
    const struct write *first = &waits->writes[0];
    return waits->write_count > 0 && waits->passed >= first->waits && queue_passed(channel->queue, first->position);
}

static void drop_first_write(struct channel_waits *waits) {
    waits->write_count--;
    for (unsigned i = 0; i < waits->write_count; i++) waits->writes[i] = waits->writes[i + 1];
}

/* The next write of a channel. */
struct next_write {
    const struct channel *channel;
    struct channel_waits *waits; /* NULL: there is none */
    uint64_t number;
};

/* Of the next writes of all channels, the last one with a number below `bound`. A call, which the context's own thread
 * makes, is no write. */
static struct next_write last_below(uint64_t bound) {
    struct next_write found = {0};
    for (struct stream_waits *context = all; context; context = context->next) {
        for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) {
            struct channel_waits *waits = &context->of[i];
            bool is_write = waits->write_count > 0 && waits->writes[0].word;
            uint64_t number = is_write ? waits->writes[0].number : 0;
            if (number > found.number && number < bound)
                found = (struct next_write){.channel = &context->context->channel[i], .waits = waits, .number = number};
        }
    }
    return found;
}

/* The first write whose turn has come. A write may wait for writes of other streams, which were added before. So the
 * card is asked about later writes first: when one of them is due, those that it waits for are found due as well. */
static struct next_write first_due(void) {
    struct next_write due = {0};
    for (struct next_write next = last_below(UINT64_MAX); next.waits; next = last_below(next.number))
        if (is_due(next.channel, next.waits)) due = next;
    return due;
}

static void do_writes(void) {
    struct next_write due;
    while ((due = first_due()).waits) {
        __atomic_store_n(due.waits->writes[0].word, due.waits->writes[0].value, __ATOMIC_RELEASE);
        drop_first_write(due.waits);
    }
}

static void update_channel(CUcontext context, const struct channel *channel) {
    struct channel_waits *waits = waits_of(context, channel);
    bool has_changed = false;
    if (waits->count > 0 && !is_open(&waits->waits[0])) give_up_if_due(channel, &waits->waits[0]);
    while (waits->count > 0 && is_open(&waits->waits[0])) {
        drop_first(waits);
        has_changed = true;
    }
    if (has_changed) {
        waits->launches = waits->count > 0 ? waits->launches : 0;
        card_queue_hold(channel->queue, waits->count > 0 ? waits->waits[0].position : 0);
    }
    do_writes();
}

static void update(CUcontext context) {
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) update_channel(context, &context->channel[i]);
}

static void sleep_once(void) { driver_sleep_until(clock_now_ns() + POLL_NS); }

static bool blocks_functions(const struct wait *wait) { return wait->word && !wait->is_kernel; }

/* Whether a stream of the context waits for a value or a function. */
static bool is_closed(CUcontext context) {
    if (!context_is_alive(context) || !context->waits) return false;
    update(context);
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++)
        if (context->waits->of[i].count > 0 && blocks_functions(&context->waits->of[i].waits[0])) return true;
    return false;
}

void stream_waits_await_open(void) {
    CUcontext context;
    while (context_current(&context) == CUDA_SUCCESS && is_closed(context)) sleep_once();
}

static bool is_full(CUcontext context, const struct channel *channel) {
    if (!context_is_alive(context) || !context->waits) return false;
    update_channel(context, channel);
    const struct channel_waits *waits = waits_of(context, channel);
    return waits->count > 0 && waits->launches >= CHANNEL_LAUNCHES;
}

void stream_waits_await_room(CUcontext context, const struct channel *channel) {
    while (is_full(context, channel)) sleep_once();
}

void stream_waits_count_launch(CUcontext context, const struct channel *channel) {
    if (context->waits && waits_of(context, channel)->count > 0) waits_of(context, channel)->launches++;
}

static void make_call(const struct host_call *call) {
    if (call->function)
        call->function(call->data);
    else
        call->callback(call->stream, CUDA_SUCCESS, call->data);
}

/* Makes the channel's call whose turn has come, without the lock. */
static void make_call_if_due(struct stream_waits *all_waits, unsigned channel) {
    struct channel_waits *waits = &all_waits->of[channel];
    if (all_waits->is_ending || waits->write_count == 0 || waits->writes[0].word ||
        !is_due(&all_waits->context->channel[channel], waits))
        return;
    struct host_call call = waits->writes[0].call;
    all_waits->is_calling = true;
    driver_unlock();
    make_call(&call);
    driver_lock();
    all_waits->is_calling = false;
    drop_first_write(waits);
    __atomic_fetch_add(&waits->calls_done, 1, __ATOMIC_RELEASE);
}

static bool is_used(const struct stream_waits *waits) {
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++)
        if (waits->of[i].count > 0 || waits->of[i].write_count > 0) return true;
    return false;
}

static void update_until_ended(struct stream_waits *waits) {
    HOLD_DRIVER();
    while (!waits->is_ended) {
        for (unsigned i = 0; i < TIMELINE_CHANNELS && !waits->is_ended; i++) make_call_if_due(waits, i);
        if (waits->is_ended) return;
        update(waits->context);
        driver_sleep_until(clock_now_ns() + (is_used(waits) ? POLL_NS : IDLE_POLL_NS));
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

static bool has_waits(CUcontext context) {
    if (!context->waits) {
        context->waits = calloc(1, sizeof *context->waits);
        if (!context->waits) return false;
        context->waits->context = context;
        context->waits->next = all;
        all = context->waits;
    }
    return start_thread(context);
}

static bool is_ready(CUstream stream) { return stream_begin(stream) && has_waits(stream->context); }

static void add_position(CUstream stream) {
    uint64_t runs;
    stream_moved(stream, card_queue_add(stream->channel->queue, 1, stream->fills, &runs));
}

/* The position behind all work of the channel. Position 0 holds nothing back, so an empty channel gets one of its own.
 */
static uint64_t last_position(CUstream stream) {
    if (stream->channel->submitted == 0) add_position(stream);
    return stream->channel->submitted;
}

static void add_write(CUstream stream, struct write write) {
    struct channel_waits *waits = waits_of(stream->context, stream->channel);
    update_channel(stream->context, stream->channel);
    while (waits->write_count == WRITES) {
        sleep_once();
        update_channel(stream->context, stream->channel);
    }
    write.position = last_position(stream);
    write.waits = waits->passed + waits->count;
    write.number = ++writes_added;
    waits->writes[waits->write_count++] = write;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the word is written later */
CUresult stream_waits_write(CUstream stream, uint32_t *word, uint32_t value) {
    if (!is_ready(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_write(stream, (struct write){.word = word, .value = value});
    add_position(
        stream); /* the write has been done when this position has passed, and stream_waits_do_writes was called */
    update_channel(stream->context, stream->channel);
    return CUDA_SUCCESS;
}

void stream_waits_do_writes(struct card_queue queue) {
    for (struct stream_waits *waits = all; waits; waits = waits->next) {
        for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) {
            const struct channel *channel = &waits->context->channel[i];
            bool is_asked = channel->queue.id == queue.id && channel->queue.card == queue.card;
            if (is_asked && queue.id != 0) update_channel(waits->context, channel);
        }
    }
}

static void add_wait(CUstream stream, struct wait wait) {
    struct channel_waits *waits = waits_of(stream->context, stream->channel);
    update_channel(stream->context, stream->channel);
    while (waits->count == WAITS) {
        sleep_once();
        update_channel(stream->context, stream->channel);
    }
    wait.position = last_position(stream);
    waits->waits[waits->count++] = wait;
    if (waits->count == 1) card_queue_hold(stream->channel->queue, wait.position);
    add_position(stream); /* events and writes behind the wait have a later position than the wait */
}

static CUresult add_if_closed(CUstream stream, struct wait wait) {
    if (is_open(&wait)) return CUDA_SUCCESS;
    if (!is_ready(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_wait(stream, wait);
    return CUDA_SUCCESS;
}

CUresult stream_waits_add(CUstream stream, const uint32_t *word, uint32_t value) {
    return add_if_closed(stream, (struct wait){.word = word, .value = value});
}

CUresult stream_waits_add_spin(CUstream stream, uint32_t *word, uint32_t value, uint64_t timeout) {
    struct wait wait = {.word = word, .value = value, .is_kernel = true, .given_up = word, .timeout = timeout};
    return add_if_closed(stream, wait);
}

CUresult stream_waits_add_event(CUstream stream, struct card_queue queue, uint64_t position) {
    if (!is_ready(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_wait(stream, (struct wait){.event_queue = queue, .event_position = position});
    return CUDA_SUCCESS;
}

CUresult stream_waits_call(CUstream stream, struct host_call call) {
    if (!is_ready(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    add_write(stream, (struct write){.call = call});
    struct channel_waits *waits = waits_of(stream->context, stream->channel);
    add_wait(stream, (struct wait){.word = &waits->calls_done, .value = ++waits->calls_asked});
    return CUDA_SUCCESS;
}
