/* Ends what the launch gates keep about a stream or a context before the program destroys it. */
#ifndef VGPU_COMPUTE_GATE_GATE_TEARDOWN_H
#define VGPU_COMPUTE_GATE_GATE_TEARDOWN_H

#include "compute/queue/queue_page.h"
#include "driver/abi.h"

/* Called before `stream` is destroyed; NULL does nothing. Records the end of the open turn's launches in this stream if
 * that is still to be done, because afterwards their time could not be measured. Takes LOCK_GATE; waits at most one
 * second for each card whose turn another thread is closing. */
void gate_teardown_stream(CUstream stream);

/* Called before `context` is destroyed, or, where that is NULL, every context of a device (-1: of any device). Ends the
 * open turn of the device, charges it with the estimates of its launches, and destroys the CUDA events of its turns,
 * which belong to contexts. `pages` are those of the contexts: the caller passes them to queue_page_restore if no
 * context has ended. Takes LOCK_GATE and the locks of turn_request.h; waits at most 1 s for a thread that is closing
 * the turn, and 100 ms for launches in the driver. */
void gate_teardown_contexts(int device, CUcontext context, struct hidden_pages *pages);

#endif
