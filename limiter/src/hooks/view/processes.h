/* Lists of a card's users as NVML gives them, in whatever form: only the processes of this container, with what they
 * are charged. Whatever the program asks with, the driver is asked for all; then ours are kept and counted. */
#ifndef VGPU_HOOKS_VIEW_PROCESSES_H
#define VGPU_HOOKS_VIEW_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/abi.h"
#include "region/region.h"

/* Where in an entry of a list the fields lie that we look at. */
struct layout {
    size_t entry_size;
    size_t pid_offset;
    size_t memory_offset;
};

#define NO_MEMORY         SIZE_MAX
#define LAYOUT(Info)      {sizeof(Info), offsetof(Info, pid), offsetof(Info, usedGpuMemory)}
#define BARE_LAYOUT(Info) {sizeof(Info), offsetof(Info, pid), NO_MEMORY}

/* A question to the driver: as the program asked it, but for the room, which is ours. */
struct process_query {
    nvmlReturn_t (*read)(const struct process_query *query, unsigned *count, void *entries);
    nvmlDevice_t device;
    struct layout layout;
    uint8_t uuid[UUID_SIZE];      /* the device's, from `processes_are_filtered` on */
    unsigned mode;                /* of nvmlDeviceGetRunningProcessDetailList */
    unsigned long long last_seen; /* of utilisation */
};

/* Whether such questions about the device are ours to answer; where not, the driver's own answer stands. */
bool processes_are_filtered(struct process_query *query);

/* Whether a process, by the pid that NVML gives, is this container's; then `*memory` is what it is charged. */
bool processes_is_ours(const struct process_query *query, unsigned pid, unsigned long long *memory);

/* Fills the program's array of `*count` entries by NVML's protocol: where it is too small, or NULL, `*count` becomes
 * what is needed. */
nvmlReturn_t processes_answer(const struct process_query *query, unsigned *count, void *entries);

#endif
