/* Fork handling. CUDA does not survive fork(), so the child of a fork holds no memory of a card and must forget what
 * the library recorded about the parent. Each module that records something registers a function that clears it, next
 * to that function:
 *
 *     static void forget(void) { ... }
 *     FORGET_IN_CHILD(forget);
 *
 * The forking thread takes every lock of process/lock.c before the fork, so that the child finds all tables consistent,
 * and both processes release them afterwards. */
#ifndef VGPU_PROCESS_FORK_H
#define VGPU_PROCESS_FORK_H

typedef void (*fork_forget_function)(void);

/* Registers a function to be called in the child. The linker collects the registrations in the section `vgpu_fork`;
 * their order is undefined. It is called with all locks of process/lock.c held, so it takes none. */
#define FORGET_IN_CHILD(function)                                                                                 \
    static const fork_forget_function registered_##function __attribute__((used, retain, section("vgpu_fork"))) = \
        function

/* Installs the pthread_atfork handlers. Called once, before any module records anything. */
void fork_install_handlers(void);

/* Calls every registered function, as happens in a forked child; for tests. */
void fork_forget_all(void);

#endif
