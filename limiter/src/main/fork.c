#include "main/fork.h"

#include <pthread.h>

#include "books/array_chunks.h"
#include "books/array_records.h"
#include "books/bindings.h"
#include "books/exports.h"
#include "books/graph_needs.h"
#include "books/imports.h"
#include "books/ipc_exports.h"
#include "books/physical_memory.h"
#include "books/pointers.h"
#include "books/pool_guard.h"
#include "books/pool_ids.h"
#include "books/pools.h"
#include "books/recent_allocations.h"
#include "charge/charge.h"
#include "charge/nvml_usage.h"
#include "compute/launch_gate.h"
#include "container/container.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/programs/libraries.h"
#include "region/pending_pool_ends.h"

static void before(void) {
    pool_users_lock();
    place_lock();
    holdings_lock();
    ipc_lock();
    libraries_lock();
    pool_numbers_lock();
    bindings_lock();
    backings_lock();
    outlays_lock();
    shelves_lock();
    graph_memory_lock();
    graph_needs_lock();
    pools_lock();
    exported_lock();
    imported_lock();
    share_ends_lock();
}

static void in_parent(void) {
    share_ends_unlock();
    imported_unlock();
    exported_unlock();
    pools_unlock();
    graph_needs_unlock();
    graph_memory_unlock();
    shelves_unlock();
    outlays_unlock();
    backings_unlock();
    bindings_unlock();
    pool_numbers_unlock();
    libraries_unlock();
    ipc_unlock();
    holdings_unlock();
    place_unlock();
    pool_users_unlock();
}

static void in_child(void) {
    charge_forget();
    gate_forget();
    measure_forget();
    place_forget();
    pools_forget();
    exported_forget_all();
    imported_forget_all();
    pool_numbers_forget_all();
    share_ends_forget_all();
    recents_forget();
    pool_users_forget();
    backings_forget_all();
    bindings_forget_all();
    graph_memory_forget_all();
    graph_needs_forget_all();
    outlays_forget_all();
    shelves_forget_all();
    ipc_forget_all();
    libraries_forget_all();
    holdings_forget_all();
    in_parent();
}

void fork_watch(void) { pthread_atfork(before, in_parent, in_child); }
