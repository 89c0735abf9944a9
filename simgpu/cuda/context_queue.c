/* The work of contexts on their cards, and when events passed. */
#define _GNU_SOURCE
#include "stream.h"

#include "hardware/timeline.h"

#include <sys/prctl.h>

static bool is_open(CUcontext context) {
    return context->queue.id != 0 || ledger_queue_open(device_at(context->device)->uuid, &context->queue);
}

/* Its time is known, or no longer asked for. */
static void forget(CUevent event) {
    if (event->link != NULL) {
        *event->link = event->next;
        if (event->next != NULL) {
            event->next->link = event->link;
        }
    }
    event->link = NULL;
}

static void expect(CUevent event, CUcontext context) {
    event->next = context->events;
    event->link = &context->events;
    if (event->next != NULL) {
        event->next->link = &event->next;
    }
    context->events = event;
}

uint64_t event_passed(CUevent event) {
    uint64_t earliest;
    if (event->at == 0 && event->queue.id != 0) {
        event->at = ledger_queue_passed(event->queue, event->position, &earliest);
    }
    if (event->at != 0) {
        forget(event);
    }
    return event->at;
}

static void tell_events(CUcontext context) {
    CUevent next;
    for (CUevent each = context->events; each != NULL; each = next) {
        next = each->next;
        (void)event_passed(each);
    }
}

CUresult context_work(CUcontext context, uint64_t ns, uint64_t *position) {
    uint64_t runs;
    if (!is_open(context)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *position = context->submitted = ledger_queue_add(context->queue, ns, &runs);
    if (runs - context->told >= TIMELINE_RUNS / 2) { /* before the times of some are forgotten */
        tell_events(context);
        context->told = runs;
    }
    return CUDA_SUCCESS;
}

void event_forget(CUevent event) {
    forget(event);
    event->queue.id = 0;
    event->at = 0;
}

CUresult event_mark(CUevent event, CUcontext context, uint64_t after) {
    if (!is_open(context)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event_forget(event);
    event->queue = context->queue;
    event->position = ledger_queue_mark(context->queue, after);
    context->submitted = event->position > context->submitted ? event->position : context->submitted;
    expect(event, context);
    return CUDA_SUCCESS;
}

void queue_end(CUcontext context) {
    if (context->queue.id != 0) {
        ledger_queue_close(context->queue);
    }
    tell_events(context);
}

bool queue_passed(SimQueue queue, uint64_t position) {
    uint64_t earliest;
    return queue.id == 0 || ledger_queue_passed(queue, position, &earliest) != 0;
}

void queue_await(SimQueue queue, uint64_t position) {
    uint64_t earliest;
    int slack = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* a real driver waits without sleeping */
    while (queue.id != 0 && ledger_queue_passed(queue, position, &earliest) == 0) {
        sleep_until(earliest);
    }
    (void)prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0UL);
}
