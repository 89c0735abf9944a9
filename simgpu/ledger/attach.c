#include "ledger/attach.h"

#include <pthread.h>

#include "hardware/state_directory.h"
#include "ledger/shared_memory.h"
#include "ledger/state.h"

static bool forked;

/* The child has no context and no slot. */
static void after_fork_in_child(void) {
    forked = forked || own_slot >= 0;
    state_leave_to_parent();
    shared_memory_reset();
}

static int attach(void) {
    static bool prepared;
    char path[STATE_PATH_SIZE];
    state_directory_path(path, "state");
    if (!state_is_mapped(path)) shared_memory_reset();
    if (!prepared) prepared = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
    return state_map(path);
}

int ledger_attach(void) {
    HOLD_PROCESS_LOCK();
    return attach();
}

bool ledger_is_forked(void) { return forked; }
