/* Finds a symbol in the C library without dlsym: that name is ours. */
#ifndef VGPU_DRIVER_ELF_H
#define VGPU_DRIVER_ELF_H

/* The address of `symbol` as the loaded C library defines it, or NULL. */
void *elf_find_symbol(const char *symbol);

#endif
