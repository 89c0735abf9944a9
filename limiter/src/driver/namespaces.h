/* Copies of this library in other namespaces of the loader (driver/loading.c makes them). A copy uses its namespace's
 * own copy of the driver, and the process's one slot in the region. */
#ifndef VGPU_DRIVER_NAMESPACES_H
#define VGPU_DRIVER_NAMESPACES_H

/* functions_substitute of a copy. */
typedef void *(*namespaces_function)(void *);

/* Adds a copy, unless it is known. */
void namespaces_add(namespaces_function substitute);

/* The wrapper that a copy has for an address, else `address`. Calls nothing of the C library. */
void *namespaces_substitute(void *address);

#endif
