#include "compute/gate/gate_teardown.h"

#include <string.h>

#include "compute/gate/gate_drive.h"
#include "compute/gate/gate_state.h"
#include "compute/link/arbiter_link.h"
#include "compute/queue/queue_page.h"
#include "compute/queue/stream_waits.h"
#include "process/fork.h"
#include "process/lock.h"

void gate_teardown_stream(CUstream stream) {
    if (!stream || !gate_is_used()) return;
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) gate_drive_end_stream(gate_at(i), stream);
}

/* Other threads may have queued launches since the turns ended, behind words of these pages. Under a lock, because a
 * page must not be written when another thread, which ends its context, has returned from here. */
static void release_pages(int device, CUcontext context, struct hidden_pages *pages) {
    HOLD_LOCK(LOCK_HIDDEN_PAGES);
    queue_page_hide(device, context, pages);
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) gate_drive_await_holder(gate_at(i));
    queue_page_open_hidden(pages);
}

void gate_teardown_contexts(int device, CUcontext context, struct hidden_pages *pages) {
    *pages = (struct hidden_pages){0};
    if (!gate_is_used()) return;
    stream_waits_forget();
    for (int i = 0; i < GATES; i++)
        if (gate_at(i) && (device < 0 || device == i)) gate_drive_end_contexts(gate_at(i));
    release_pages(device, context, pages);
}

static void forget(struct gate *gate) {
    struct turn_request request = {0};
    memcpy(request.uuid, gate->request.uuid, sizeof request.uuid);
    arbiter_link_forget(&gate->request.link);
    unsigned index = gate->index;
    memset(gate, 0, sizeof *gate);
    gate->request = request;
    gate->index = index;
}

static void forget_in_child(void) {
    for (int i = 0; i < GATES; i++)
        if (gate_at(i)) forget(gate_at(i));
}
FORGET_IN_CHILD(forget_in_child);
