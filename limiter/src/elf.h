/* Finds a symbol in a loaded library without dlsym: that name is ours. */
#ifndef VGPU_ELF_H
#define VGPU_ELF_H

/* The address of `symbol` as the loaded library of that file name defines it, or NULL. */
void *elf_symbol(const char *library, const char *symbol);

#endif
