#include "process/fork.h"

#include <stddef.h>

#include "loader/elf.h"
#include "loader/libc.h"
#include "process/lock.h"

/* The bounds of the section `vgpu_fork`; the linker defines these names.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*) */
extern const fork_forget_function __start_vgpu_fork[] __attribute__((visibility("hidden")));
extern const fork_forget_function __stop_vgpu_fork[] __attribute__((visibility("hidden")));
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl*) */

void fork_forget_all(void) {
    for (const fork_forget_function *forget = __start_vgpu_fork; forget < __stop_vgpu_fork; forget++) (*forget)();
}

static void handle_child(void) {
    fork_forget_all();
    lock_release_all();
}

typedef int (*register_function)(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);

/* For some processors, glibc's pthread_atfork is no function of the C library, but a part of each program that calls
 * this one. musl has pthread_atfork. */
void fork_install_handlers(void) {
    register_function install = (register_function)elf_find_symbol("__register_atfork");
    if (install)
        install(lock_take_all, lock_release_all, handle_child, NULL);
    else
        LIBC(pthread_atfork)(lock_take_all, lock_release_all, handle_child);
}
