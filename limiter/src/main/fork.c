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
    pool_guard_lock();
    container_lock();
    pointers_lock();
    ipc_exports_lock();
    libraries_lock();
    pool_ids_lock();
    bindings_lock();
    physical_memory_lock();
    array_records_lock();
    array_chunks_lock();
    graph_memory_lock();
    graph_needs_lock();
    pools_lock();
    exports_lock();
    imports_lock();
    pending_pool_ends_lock();
}

static void in_parent(void) {
    pending_pool_ends_unlock();
    imports_unlock();
    exports_unlock();
    pools_unlock();
    graph_needs_unlock();
    graph_memory_unlock();
    array_chunks_unlock();
    array_records_unlock();
    physical_memory_unlock();
    bindings_unlock();
    pool_ids_unlock();
    libraries_unlock();
    ipc_exports_unlock();
    pointers_unlock();
    container_unlock();
    pool_guard_unlock();
}

static void in_child(void) {
    charge_forget();
    gate_forget();
    nvml_usage_forget();
    container_forget();
    pools_forget();
    exports_forget_all();
    imports_forget_all();
    pool_ids_forget_all();
    pending_pool_ends_forget_all();
    recent_allocations_forget();
    pool_guard_forget();
    physical_memory_forget_all();
    bindings_forget_all();
    graph_memory_forget_all();
    graph_needs_forget_all();
    array_records_forget_all();
    array_chunks_forget_all();
    ipc_exports_forget_all();
    libraries_forget_all();
    pointers_forget_all();
    in_parent();
}

void fork_watch(void) { pthread_atfork(before, in_parent, in_child); }
