/* Loaded objects by the addresses in them. */
#ifndef VGPU_LOADER_OBJECTS_H
#define VGPU_LOADER_OBJECTS_H

#include <stdbool.h>

struct loaded_object {
    const char *path;   /* as the loader names it */
    const char *soname; /* NULL: it has none */
};

/* The object of this library's namespace in which `address` lies; false where there is none. Valid for as long as the
 * object is loaded. */
bool objects_find(const void *address, struct loaded_object *object);

#endif
