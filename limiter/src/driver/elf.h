/* Looks up a symbol of the C library by reading its ELF tables. dlsym cannot be used for that, because the library
 * exports a dlsym of its own. */
#ifndef VGPU_DRIVER_ELF_H
#define VGPU_DRIVER_ELF_H

/* Address of `symbol` in the loaded C library, or NULL. */
void *elf_find_symbol(const char *symbol);

#endif
