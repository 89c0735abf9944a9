/* Copies of this library in other namespaces of the loader (driver/loading.c makes them). A copy uses its namespace's
 * own copy of the driver, and the process's one slot in the region. */
#ifndef VGPU_DRIVER_NAMESPACES_H
#define VGPU_DRIVER_NAMESPACES_H

/* What a copy's lookup of a name answers that has found an address. */
typedef void *(*namespaces_function)(const char *name, void *address);

/* Adds a copy, unless it is known. */
void namespaces_add(namespaces_function substitute);

/* The wrapper that a copy has for an address that a lookup of `name` has found, else `address`. Calls nothing of the C
 * library. */
void *namespaces_substitute(const char *name, void *address);

#endif
