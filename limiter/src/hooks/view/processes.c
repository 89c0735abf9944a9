#include "hooks/view/processes.h"

#include <stdlib.h>
#include <string.h>

#include "charge/usage_view.h"
#include "container/container.h"
#include "driver/cards.h"

/* A container may hold many processes; new ones may come while we ask. */
enum { FIRST_ROOM = 64, SPARE_ROOM = 16, TRIES = 8 };

bool processes_shown(struct question *question) {
    return container_is_limited() && cards_of_nvml(question->device, question->uuid);
}

/* NVML gives the pid that the asking process knows the other one by, which is the one in our slots. */
bool processes_is_ours(const struct question *question, unsigned pid, unsigned long long *memory) {
    uint64_t bytes;
    if (!usage_view_of_process(pid, question->uuid, &bytes)) return false;
    *memory = bytes;
    return true;
}

static unsigned keep_ours(const struct question *question, char *entries, unsigned count) {
    const struct layout *layout = &question->layout;
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        char *entry = entries + i * layout->size;
        unsigned pid;
        unsigned long long memory;
        memcpy(&pid, entry + layout->pid, sizeof pid);
        if (!processes_is_ours(question, pid, &memory)) continue;
        if (layout->memory != NO_MEMORY) memcpy(entry + layout->memory, &memory, sizeof memory);
        memmove(entries + kept++ * layout->size, entry, layout->size);
    }
    return kept;
}

/* All that the driver lists, for the caller to free. */
static nvmlReturn_t ask_all(const struct question *question, char **entries, unsigned *count) {
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned room = FIRST_ROOM;
    *entries = NULL;
    for (int i = 0; i < TRIES && result == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
        free(*entries);
        *entries = calloc(room, question->layout.size);
        if (!*entries) return NVML_ERROR_MEMORY;
        *count = room;
        result = question->ask(question, count, *entries);
        room = (*count > room ? *count : room) + SPARE_ROOM;
    }
    return result;
}

nvmlReturn_t processes_answer(const struct question *question, unsigned *count, void *entries) {
    char *all;
    unsigned known;
    nvmlReturn_t result = ask_all(question, &all, &known);
    if (result == NVML_SUCCESS) {
        unsigned given = *count;
        *count = keep_ours(question, all, known);
        if (*count > given || (*count && !entries))
            result = NVML_ERROR_INSUFFICIENT_SIZE;
        else if (*count)
            memcpy(entries, all, *count * question->layout.size);
    }
    free(all);
    return result;
}
