/* What happens around fork(). CUDA does not survive a fork, so the child holds no memory of a card: each module that
 * remembers something of this process registers a function that forgets it, beside that function:
 *
 *     static void forget(void) { ... }
 *     FORGET_IN_CHILD(forget);
 *
 * No lock of lock.h is held by another thread while the process forks. */
#ifndef VGPU_PROCESS_FORK_H
#define VGPU_PROCESS_FORK_H

typedef void (*fork_forget_function)(void);

/* Adds a function to the table that the child goes through: the linker collects the section `vgpu_fork`. The order is
 * not defined, and all locks of lock.h are held. */
#define FORGET_IN_CHILD(function)                                                                                 \
    static const fork_forget_function registered_##function __attribute__((used, retain, section("vgpu_fork"))) = \
        function

/* Installs the handlers of this process; before there is anything to forget, once. */
void fork_install_handlers(void);

/* Forgets everything, as a child does. */
void fork_forget_all(void);

#endif
