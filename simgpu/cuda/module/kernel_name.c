#include "cuda/module/kernel_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/units.h"

#define DEFAULT_US  10
#define PREFIX      "local"
#define LOCAL_UNIT  16
#define HEAP_PREFIX "heap"
#define LOOP_PREFIX "loop"
#define LAZY_PREFIX "lazy"
#define COLD_PREFIX "cold"
#define LATE_PREFIX "late"
#define SPIN_PREFIX "await"
#define FILL_PREFIX "fill"
#define TOGETHER    "collective"
#define FAULTY      "fault"
#define FIRST_NS    2000000

static uint64_t number_at_end(const char *name, uint64_t without) {
    size_t digits = strlen(name);
    while (digits > 0 && isdigit((unsigned char)name[digits - 1])) digits--;
    return name[digits] == '\0' ? without : strtoull(name + digits, NULL, 10);
}

uint64_t kernel_iteration_ns(const char *name) {
    bool is_loop = strncmp(name, LOOP_PREFIX, sizeof LOOP_PREFIX - 1) == 0;
    return is_loop ? number_at_end(name, 0) : 0;
}

uint64_t kernel_duration_ns(const char *name) { return number_at_end(name, DEFAULT_US) * 1000; }

uint64_t kernel_loading_ns(const char *name) {
    return strncmp(name, LAZY_PREFIX, sizeof LAZY_PREFIX - 1) == 0 ? FIRST_NS : 0;
}

uint64_t kernel_warming_ns(const char *name) {
    return strncmp(name, COLD_PREFIX, sizeof COLD_PREFIX - 1) == 0 ? FIRST_NS : 0;
}

uint64_t kernel_launching_ns(const char *name) {
    bool is_named = strncmp(name, LATE_PREFIX, sizeof LATE_PREFIX - 1) == 0;
    return is_named ? strtoull(name + sizeof LATE_PREFIX - 1, NULL, 10) * 1000 : 0;
}

bool kernel_spins(const char *name) { return strncmp(name, SPIN_PREFIX, sizeof SPIN_PREFIX - 1) == 0; }

uint64_t kernel_spin_timeout_ns(const char *name) {
    return kernel_spins(name) ? strtoull(name + sizeof SPIN_PREFIX - 1, NULL, 10) * 1000000 : 0;
}

uint32_t kernel_fills(const char *name) {
    bool is_named = strncmp(name, FILL_PREFIX, sizeof FILL_PREFIX - 1) == 0;
    uint64_t percent = is_named ? strtoull(name + sizeof FILL_PREFIX - 1, NULL, 10) : 0;
    return percent < 100 ? (uint32_t)percent : 0;
}

uint32_t kernel_ranks(const char *name) {
    bool is_named = strncmp(name, TOGETHER, sizeof TOGETHER - 1) == 0;
    return is_named ? (uint32_t)strtoul(name + sizeof TOGETHER - 1, NULL, 10) : 0;
}

bool kernel_faults(const char *name) { return strncmp(name, FAULTY, sizeof FAULTY - 1) == 0; }

bool kernel_uses_heap(const char *name) { return strncmp(name, HEAP_PREFIX, sizeof HEAP_PREFIX - 1) == 0; }

uint64_t kernel_local_bytes(const char *name) {
    bool is_named = strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
    return is_named ? round_up(strtoull(name + sizeof PREFIX - 1, NULL, 10), LOCAL_UNIT) : 0;
}
