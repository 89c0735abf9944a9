#include "kernel_name.h"

#include "hardware/units.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_US  10
#define PREFIX      "local"
#define LOCAL_UNIT  16
#define HEAP_PREFIX "heap"

uint64_t kernel_duration_ns(const char *name) {
    size_t digits = strlen(name);
    while (digits > 0 && isdigit((unsigned char)name[digits - 1])) {
        digits--;
    }
    uint64_t us = name[digits] == '\0' ? DEFAULT_US : strtoull(name + digits, NULL, 10);
    return us * 1000;
}

bool kernel_uses_heap(const char *name) { return strncmp(name, HEAP_PREFIX, sizeof HEAP_PREFIX - 1) == 0; }

uint64_t kernel_local_bytes(const char *name) {
    bool named = strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
    return named ? round_up(strtoull(name + sizeof PREFIX - 1, NULL, 10), LOCAL_UNIT) : 0;
}
