#include "common/environment.h"

#include <stddef.h>
#include <unistd.h>

/* What follows "NAME=" in an entry of the environment; NULL where the entry is another variable's. */
static const char *value_of(const char *entry, const char *name) {
    for (; *name && *entry == *name; entry++) name++;
    return !*name && *entry == '=' ? entry + 1 : NULL;
}

const char *environment_find(const char *name) {
    for (char **entry = environ; entry && *entry; entry++) {
        const char *value = value_of(*entry, name);
        if (value) return value;
    }
    return NULL;
}
