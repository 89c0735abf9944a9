/* Two words for each gate, in a page of pinned memory for each context: one that streams wait for, and one in which the
 * card says how far it is. A stream that is to wait for segment `n` of a gate gets a wait for a value of at least `n`
 * (cyclic comparison, so that numbers may wrap around); storing `n` opens every wait for segments up to `n`. The page
 * belongs to the context, whose end frees it together with the streams that use it. */
#ifndef VGPU_COMPUTE_QUEUE_QUEUE_PAGE_H
#define VGPU_COMPUTE_QUEUE_QUEUE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"

/* Contexts whose streams can wait. In others, launches take turns without being queued. */
enum { QUEUE_PAGES = 16 };

/* Whether launches of the current context can be queued. The first call asks the driver and the environment, and the
 * first call in a context allocates its page; call it while no wait is closed. Not with VGPU_QUEUE_AHEAD=0 (ADR 88);
 * not under CUDA_LAUNCH_BLOCKING=1, where a launch waits for its kernel; not beside injected tools (profilers,
 * sanitizers), which may wait for each kernel; and not under MPS. */
bool queue_page_is_usable(void);

/* Whether the context has a page. */
bool queue_page_has(CUcontext context);

struct queue_page {
    CUcontext context; /* atomic; NULL = the entry is free */
    char *host;        /* atomic, set last; NULL = there is no page */
    int device;        /* of the context */
    CUdeviceptr address;
};

/* Pages of contexts that are about to end. */
struct hidden_pages {
    struct queue_page pages[QUEUE_PAGES];
};

/* `context` is about to end, or, where that is NULL, every context of `device` (-1: of any device): their pages are no
 * longer used, and put into `hidden`. Pages of other contexts stay in use. The other functions use the
 * pages under a gate's lock, so they are in use until the caller has taken and released the lock of each gate. The
 * caller holds LOCK_HIDDEN_PAGES until it has called queue_page_open_hidden. */
void queue_page_hide(int device, CUcontext context, struct hidden_pages *hidden);

/* Opens every wait for a word of a hidden page, for good: no later queue_page_open would. */
void queue_page_open_hidden(const struct hidden_pages *hidden);

/* The contexts have not ended: their pages are used again. Until the next queue_page_open of a gate, no wait for its
 * word is closed. */
void queue_page_restore(const struct hidden_pages *hidden);

/* Lets no stream wait from now on. */
void queue_page_refuse(void);

/* Makes a stream of the current context wait for segment `number` of the gate with index `gate`. Where the driver
 * refuses, no stream waits from then on. */
void queue_page_wait(CUcontext context, CUstream stream, unsigned gate, uint32_t number);

/* Makes a stream of the current context write that the card has begun segment `number` of the gate. Where the driver
 * refuses, no stream waits from then on. */
void queue_page_mark(CUcontext context, CUstream stream, unsigned gate, uint32_t number);

/* The newest number that the card wrote for the gate, `known` if that is newer. */
uint32_t queue_page_begun(unsigned gate, uint32_t known);

/* Opens the waits of a gate for segments up to `number`. A plain store; calls no driver function. */
void queue_page_open(unsigned gate, uint32_t number);

#endif
