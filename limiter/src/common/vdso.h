/* Functions of the vDSO: a small library that the kernel maps into every process. */
#ifndef VGPU_COMMON_VDSO_H
#define VGPU_COMMON_VDSO_H

/* The address of the function `name` in the vDSO whose ELF image lies at `image`; NULL where `image` is 0 or the vDSO
 * does not have the function. */
void *vdso_find(unsigned long image, const char *name);

#endif
