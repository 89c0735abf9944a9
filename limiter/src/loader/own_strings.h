/* String functions for what runs inside dlsym. The C library's may not be called there: a sanitizer in the program
 * replaces them by its own, which crash until the sanitizer has looked up the C library's, by our dlsym. */
#ifndef VGPU_LOADER_OWN_STRINGS_H
#define VGPU_LOADER_OWN_STRINGS_H

#include <stdbool.h>

/* strcmp(text, other) == 0 */
static inline bool own_strings_are_equal(const char *text, const char *other) {
    for (; *text && *text == *other; text++) other++;
    return *text == *other;
}

static inline bool own_strings_begins_with(const char *text, const char *prefix) {
    for (; *prefix && *text == *prefix; text++) prefix++;
    return !*prefix;
}

/* What follows the last '/', or the whole path. */
static inline const char *own_strings_file_name(const char *path) {
    const char *name = path;
    for (; *path; path++)
        if (*path == '/') name = path + 1;
    return name;
}

#endif
