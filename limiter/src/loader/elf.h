/* Reads the loader's list of loaded objects and the ELF tables of the C library. No function here calls a function of
 * the C library that a program may replace by its own, except that elf_find_symbol does under dlmopen(). */
#ifndef VGPU_LOADER_ELF_H
#define VGPU_LOADER_ELF_H

#include <link.h>
#include <stdbool.h>

/* Address of `symbol` in the loaded C library, or NULL. dlsym cannot be used for that, because the library exports a
 * dlsym of its own. */
void *elf_find_symbol(const char *symbol);

/* Whether an object that was loaded before this library, such as the program, defines `symbol`. */
bool elf_is_defined_before(const char *symbol);

/* The first of the loaded objects, among which is this library: the program. NULL where dlmopen() has loaded this
 * library into a namespace of its own: glibc's list is that of the program's namespace, which has another C library. */
const struct link_map *elf_loaded_objects(void);

#endif
