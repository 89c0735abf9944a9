/* The words that streams wait for, one for each gate, in pinned memory that every context of the process can read. A
 * stream that is to wait for batch `n` of a gate gets a wait for a value of at least `n` (cyclic comparison, so that
 * numbers may wrap around); storing `n` opens every wait for batches up to `n`. */
#ifndef VGPU_COMPUTE_QUEUE_PAGE_H
#define VGPU_COMPUTE_QUEUE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"

/* Whether launches can be queued in this process. The first call allocates the page, in the current context, and asks
 * the driver and the environment; call it while no wait is closed. Only with VGPU_QUEUE_AHEAD=1 (ADR 35), and not
 * under CUDA_LAUNCH_BLOCKING=1, where a launch waits for its kernel; beside injected tools (profilers, sanitizers),
 * which may wait for each kernel; or under MPS. */
bool queue_page_is_usable(void);

/* The context that owns the page may end: the next call of queue_page_is_usable allocates another page. No wait is
 * closed. */
void queue_page_release(void);

/* Lets no stream wait from now on. */
void queue_page_refuse(void);

/* Makes the stream of the current context wait for batch `number` of the gate with index `gate`. Where the driver
 * refuses, no stream waits from then on. */
void queue_page_wait(CUstream stream, unsigned gate, uint32_t number);

/* Opens the waits of a gate for batches up to `number`. A plain store; calls no driver function. */
void queue_page_open(unsigned gate, uint32_t number);

#endif
