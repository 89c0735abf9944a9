#include "ledger/attach.h"

#include <pthread.h>

#include "hardware/state_directory.h"
#include "ledger/shared_memory.h"
#include "ledger/state.h"

static bool is_forked;

/* The child has no context and no slot. */
static void after_fork_in_child(void) {
    is_forked = is_forked || own_slot >= 0;
    state_leave_to_parent();
    shared_memory_reset();
}

static int attach(void) {
    static bool is_prepared;
    char path[STATE_PATH_SIZE];
    state_directory_path(path, "state");
    if (!state_is_mapped(path)) shared_memory_reset();
    if (!is_prepared) is_prepared = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
    return state_map(path);
}

int ledger_attach(void) {
    HOLD_PROCESS_LOCK();
    return attach();
}

bool ledger_is_forked(void) { return is_forked; }
