#include "books/graph_needs.h"

#include <pthread.h>

#include "books/hash_table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hash_table needs[REGION_CARDS]; /* under the mutex: by graph, of each device */
static int devices;  /* atomically, under the mutex when written: one past the last with a need */
static bool is_left; /* atomically */

void graph_needs_lock(void) { pthread_mutex_lock(&mutex); }

void graph_needs_unlock(void) { pthread_mutex_unlock(&mutex); }

void graph_needs_forget_all(void) {
    for (int device = 0; device < REGION_CARDS; device++) hash_table_clear(&needs[device]);
    devices = 0;
    is_left = false;
}

bool graph_needs_any(void) { return __atomic_load_n(&devices, __ATOMIC_RELAXED) != 0; }

bool graph_needs_any_left(void) { return __atomic_load_n(&is_left, __ATOMIC_RELAXED); }

/* Under the mutex. */
static void put(uint64_t graph, int device, uint64_t bytes) {
    if (!hash_table_put(&needs[device], (struct hash_table_entry){.key = graph, .bytes = bytes})) return;
    if (device >= devices) __atomic_store_n(&devices, device + 1, __ATOMIC_RELAXED);
}

void graph_needs_put(uint64_t graph, const uint64_t bytes[REGION_CARDS], bool leaves) {
    graph_needs_remove(graph);
    graph_needs_lock();
    for (int device = 0; device < REGION_CARDS; device++)
        if (bytes[device]) put(graph, device, bytes[device]);
    graph_needs_unlock();
    if (leaves) __atomic_store_n(&is_left, true, __ATOMIC_RELAXED);
}

void graph_needs_remove(uint64_t graph) {
    if (!graph_needs_any()) return;
    graph_needs_lock();
    for (int device = 0; device < devices; device++) hash_table_take(&needs[device], graph);
    graph_needs_unlock();
}

int graph_needs_of(uint64_t graph, uint64_t bytes[REGION_CARDS]) {
    uint64_t all = 0;
    graph_needs_lock();
    int count = devices;
    for (int device = 0; device < count; device++) all |= bytes[device] = hash_table_find(&needs[device], graph).bytes;
    graph_needs_unlock();
    return all ? count : 0;
}
