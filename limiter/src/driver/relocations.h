/* Binds loaded objects to this library that the loader has bound to the driver or to the C library's dlsym: objects
 * that were loaded by dlopen with RTLD_DEEPBIND, or by dlmopen into a namespace of the loader. */
#ifndef VGPU_DRIVER_RELOCATIONS_H
#define VGPU_DRIVER_RELOCATIONS_H

/* What a reference to `name` is bound to, given its present address (NULL: not bound yet, because of lazy binding).
 * Returns NULL to leave it. */
typedef void *(*relocations_replacement)(const char *name, void *present);

/* Asks for a replacement of each reference that an object of this library's namespace makes to another object's symbol,
 * by a function name that begins with "cu", "nvml" or "dl". Takes no lock: racing threads store equal addresses. */
void relocations_bind(relocations_replacement replacement);

#endif
