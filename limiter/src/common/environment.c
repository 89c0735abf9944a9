#include "common/environment.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/system_calls.h"
#include "common/text.h"

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

static size_t count(char *const *entries) {
    size_t found = 0;
    while (entries && entries[found]) found++;
    return found;
}

/* `to` ends with the NULL that its memory was made with. */
static void copy_others(char **to, char *const *entries, const char *name) {
    for (; entries && *entries; entries++)
        if (!value_of(*entries, name)) *to++ = *entries;
}

bool environment_set(const char *name, const char *value) {
    const char *former = environment_find(name);
    if (former && strcmp(former, value) == 0) return true;
    size_t list_size = (count(environ) + 2) * sizeof(char *);
    size_t size = list_size + strlen(name) + sizeof "=" + strlen(value);
    char **list = (char **)system_map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (list == MAP_FAILED) return false;
    list[0] = text_append(text_append(text_append((char *)list + list_size, name), "="), value);
    copy_others(list + 1, environ, name);
    __atomic_store_n(&environ, list, __ATOMIC_RELEASE);
    return true;
}
