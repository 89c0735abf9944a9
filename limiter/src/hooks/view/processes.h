/* Filters NVML's lists of processes, of any version: a program sees only the processes of its container, with the
 * memory that they are charged. The driver is asked for the whole list, whatever room the program gave; then the
 * container's entries are kept and counted. The caller holds no lock. */
#ifndef VGPU_HOOKS_VIEW_PROCESSES_H
#define VGPU_HOOKS_VIEW_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/abi.h"
#include "region/region.h"

/* Where the fields lie in an entry of a list, in bytes. */
struct layout {
    size_t entry_size;
    size_t pid_offset;
    size_t memory_offset; /* of the used bytes; NO_MEMORY: the entry has no such field */
};

#define NO_MEMORY         SIZE_MAX
#define LAYOUT(Info)      {sizeof(Info), offsetof(Info, pid), offsetof(Info, usedGpuMemory)}
#define BARE_LAYOUT(Info) {sizeof(Info), offsetof(Info, pid), NO_MEMORY}

/* A program's query for a list. `read` asks the driver for it: `*count` is the room in `entries`, and becomes the
 * number of entries, or of those needed. */
struct process_query {
    nvmlReturn_t (*read)(const struct process_query *query, unsigned *count, void *entries);
    nvmlDevice_t device;
    struct layout layout;
    uint8_t uuid[UUID_SIZE];      /* of the device; set by `processes_are_filtered` */
    unsigned mode;                /* of nvmlDeviceGetRunningProcessDetailList */
    unsigned long long last_seen; /* time stamp of utilisation samples, in us */
};

/* Whether lists of the device are filtered, and sets `query->uuid`. If not, the driver's own answer stands: nothing is
 * limited, or NVML does not know the device. */
bool processes_are_filtered(struct process_query *query);

/* Whether `pid`, as NVML gives it, is a process of this container; then `*memory` is the bytes that it is charged. */
bool processes_is_ours(const struct process_query *query, unsigned pid, unsigned long long *memory);

/* Answers a query as NVML does: fills the program's array, which has room for `*count` entries, and sets `*count`. If
 * the array is too small, or NULL, `*count` becomes what is needed and the result is NVML_ERROR_INSUFFICIENT_SIZE. */
nvmlReturn_t processes_answer(const struct process_query *query, unsigned *count, void *entries);

#endif
