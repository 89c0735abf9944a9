#include "process/fork.h"

#include <pthread.h>

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

void fork_install_handlers(void) { pthread_atfork(lock_take_all, lock_release_all, handle_child); }
