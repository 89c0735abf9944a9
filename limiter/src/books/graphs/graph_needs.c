#include "books/graphs/graph_needs.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table needs[REGION_CARDS]; /* LOCK_GRAPH_NEEDS; by device; key: the graph, bytes: its need */
static int devices;      /* atomic, written under LOCK_GRAPH_NEEDS: one past the highest device that any graph needed */
static bool is_any_left; /* atomic; never reset: a graph did not free all of its allocations */

static void forget(void) {
    for (int device = 0; device < REGION_CARDS; device++) hash_table_clear(&needs[device]);
    devices = 0;
    is_any_left = false;
}
FORGET_IN_CHILD(forget);

bool graph_needs_any(void) { return __atomic_load_n(&devices, __ATOMIC_RELAXED) != 0; }

bool graph_needs_any_unfreed(void) { return __atomic_load_n(&is_any_left, __ATOMIC_RELAXED); }

/* The caller holds LOCK_GRAPH_NEEDS. */
static void put(uint64_t graph, int device, uint64_t bytes) {
    if (!hash_table_put(&needs[device], (struct hash_table_entry){.key = graph, .bytes = bytes})) return;
    if (device >= devices) __atomic_store_n(&devices, device + 1, __ATOMIC_RELAXED);
}

void graph_needs_put(uint64_t graph, const uint64_t bytes[REGION_CARDS], bool leaves) {
    graph_needs_remove(graph);
    HOLD_LOCK(LOCK_GRAPH_NEEDS);
    for (int device = 0; device < REGION_CARDS; device++)
        if (bytes[device]) put(graph, device, bytes[device]);
    if (leaves) __atomic_store_n(&is_any_left, true, __ATOMIC_RELAXED);
}

void graph_needs_remove(uint64_t graph) {
    if (!graph_needs_any()) return;
    HOLD_LOCK(LOCK_GRAPH_NEEDS);
    for (int device = 0; device < devices; device++) hash_table_take(&needs[device], graph);
}

int graph_needs_of(uint64_t graph, uint64_t bytes[REGION_CARDS]) {
    uint64_t any_need = 0;
    HOLD_LOCK(LOCK_GRAPH_NEEDS);
    int count = devices;
    for (int device = 0; device < count; device++)
        any_need |= bytes[device] = hash_table_find(&needs[device], graph).bytes;
    return any_need ? count : 0;
}
