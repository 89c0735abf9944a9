#include "hooks/view/processes.h"

#include <stdlib.h>
#include <string.h>

#include "charge/reserve/usage_view.h"
#include "container/container.h"
#include "driver/cards.h"

/* The array starts with INITIAL_ENTRIES. If there are more processes, it grows to what NVML says and SPARE_ENTRIES for
 * processes that start before the next of TRIES queries. */
enum { INITIAL_ENTRIES = 64, SPARE_ENTRIES = 16, TRIES = 8 };

bool processes_are_filtered(struct process_query *query) {
    return container_is_limited() && cards_of_nvml(query->device, query->uuid);
}

/* NVML gives pids of the calling process's namespace, which is how the region's slots of that namespace name them. */
bool processes_is_ours(const struct process_query *query, unsigned pid, unsigned long long *memory) {
    uint64_t bytes;
    if (!usage_view_of_process(pid, query->uuid, &bytes)) return false;
    *memory = bytes;
    return true;
}

static unsigned keep_ours(const struct process_query *query, char *entries, unsigned count) {
    const struct layout *layout = &query->layout;
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        char *entry = entries + i * layout->entry_size;
        unsigned pid;
        unsigned long long memory;
        memcpy(&pid, entry + layout->pid_offset, sizeof pid);
        if (!processes_is_ours(query, pid, &memory)) continue;
        if (layout->memory_offset != NO_MEMORY) memcpy(entry + layout->memory_offset, &memory, sizeof memory);
        memmove(entries + kept++ * layout->entry_size, entry, layout->entry_size);
    }
    return kept;
}

/* Reads the driver's whole list; the caller frees `*entries`, whatever the result. */
static nvmlReturn_t read_all(const struct process_query *query, char **entries, unsigned *count) {
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned capacity = INITIAL_ENTRIES;
    *entries = NULL;
    for (int i = 0; i < TRIES && result == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
        free(*entries);
        *entries = calloc(capacity, query->layout.entry_size);
        if (!*entries) return NVML_ERROR_MEMORY;
        *count = capacity;
        result = query->read(query, count, *entries);
        capacity = (*count > capacity ? *count : capacity) + SPARE_ENTRIES;
    }
    return result;
}

nvmlReturn_t processes_answer(const struct process_query *query, unsigned *count, void *entries) {
    char *all;
    unsigned all_count;
    nvmlReturn_t result = read_all(query, &all, &all_count);
    if (result == NVML_SUCCESS) {
        unsigned program_capacity = *count;
        *count = keep_ours(query, all, all_count);
        if (*count > program_capacity || (*count && !entries))
            result = NVML_ERROR_INSUFFICIENT_SIZE;
        else if (*count)
            memcpy(entries, all, *count * query->layout.entry_size);
    }
    free(all);
    return result;
}
