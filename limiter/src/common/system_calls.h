/* System calls, made by the processor's instruction. The C library's functions of these names may be replaced by a
 * library that the program loads before this one, such as libfaketime; the limits must not depend on what such a
 * library does (limiter/imports.md). None of the functions here is a cancellation point: a thread that pthread_cancel()
 * ended inside one would leave a lock held or a launch counted, and the process would hang.
 *
 * They return what the kernel returns, a negative errno where the call failed, and leave `errno` alone. */
#ifndef VGPU_COMMON_SYSTEM_CALLS_H
#define VGPU_COMMON_SYSTEM_CALLS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/arithmetic.h"

/* NOLINTBEGIN(performance-no-int-to-ptr,bugprone-easily-swappable-parameters): the kernel's arguments are numbers */

static inline long system_call(long number, long first, long second, long third, long fourth, long fifth, long sixth) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = fourth;
    register long r8 __asm__("r8") = fifth;
    register long r9 __asm__("r9") = sixth;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    register long x2 __asm__("x2") = third;
    register long x3 __asm__("x3") = fourth;
    register long x4 __asm__("x4") = fifth;
    register long x5 __asm__("x5") = sixth;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "system calls of this processor are not known"
#endif
}

static inline int system_open(const char *path, int flags) {
    return (int)system_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static inline void system_close(int fd) { (void)system_call(SYS_close, fd, 0, 0, 0, 0, 0); }

static inline ssize_t system_read(int fd, void *out, size_t size) {
    return system_call(SYS_read, fd, (long)out, (long)size, 0, 0, 0);
}

static inline ssize_t system_write(int fd, const void *bytes, size_t size) {
    return system_call(SYS_write, fd, (long)bytes, (long)size, 0, 0, 0);
}

static inline long system_seek(int fd, long offset, int from) {
    return system_call(SYS_lseek, fd, offset, from, 0, 0, 0);
}

static inline int system_stat(const char *path, struct stat *status) {
    return (int)system_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)status, 0, 0, 0);
}

static inline int system_fstat(int fd, struct stat *status) {
    return (int)system_call(SYS_fstat, fd, (long)status, 0, 0, 0, 0);
}

/* access() with F_OK. */
static inline int system_exists(const char *path) {
    return (int)system_call(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0, 0);
}

static inline ssize_t system_readlink(const char *path, char *out, size_t size) {
    return system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)out, (long)size, 0, 0);
}

static inline int system_fcntl(int fd, int command, long argument) {
    return (int)system_call(SYS_fcntl, fd, command, argument, 0, 0, 0);
}

static inline int system_flock(int fd, int operation) { return (int)system_call(SYS_flock, fd, operation, 0, 0, 0, 0); }

/* MAP_FAILED where the call failed, as mmap() and mremap(). */
static inline void *system_mapped(long result) { return result < 0 && result > -4096 ? MAP_FAILED : (void *)result; }

/* mmap() with the offset 0, at any address. */
static inline void *system_map(size_t size, int protection, int flags, int fd) {
    return system_mapped(system_call(SYS_mmap, 0, (long)size, protection, flags, fd, 0));
}

/* Moves a mapping to an address, in place of what is mapped there. */
static inline void *system_remap(void *from, size_t size, void *to) {
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    return system_mapped(system_call(SYS_mremap, (long)from, (long)size, (long)size, flags, (long)to, 0));
}

static inline void system_unmap(void *mapped, size_t size) {
    (void)system_call(SYS_munmap, (long)mapped, (long)size, 0, 0, 0, 0);
}

static inline int system_protect(void *mapped, size_t size, int protection) {
    return (int)system_call(SYS_mprotect, (long)mapped, (long)size, protection, 0, 0, 0);
}

static inline int system_process_id(void) { return (int)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0); }

static inline int system_kill(int process, int signal) {
    return (int)system_call(SYS_kill, process, signal, 0, 0, 0, 0);
}

static inline int system_thread_id(void) { return (int)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0); }

/* Whether a thread of this process, named by its kernel's number, has not ended. */
static inline bool system_thread_exists(int thread) {
    return system_call(SYS_tgkill, system_process_id(), thread, 0, 0, 0, 0) == 0;
}

static inline ssize_t system_random(void *out, size_t size) {
    return system_call(SYS_getrandom, (long)out, (long)size, 0, 0, 0, 0);
}

static inline int system_prctl(int option, unsigned long argument) {
    return (int)system_call(SYS_prctl, option, (long)argument, 0, 0, 0, 0);
}

static inline int system_epoll_create(int flags) { return (int)system_call(SYS_epoll_create1, flags, 0, 0, 0, 0, 0); }

/* `event` is a struct epoll_event. */
static inline int system_epoll_control(int epoll, int operation, int fd, void *event) {
    return (int)system_call(SYS_epoll_ctl, epoll, operation, fd, (long)event, 0, 0);
}

/* poll() with a timeout of 0. */
static inline int system_poll_once(struct pollfd *polled, nfds_t count) {
    struct timespec timeout = {0};
    return (int)system_call(SYS_ppoll, (long)polled, (long)count, (long)&timeout, 0, 0, 0);
}

static inline int system_socket(int domain, int type) { return (int)system_call(SYS_socket, domain, type, 0, 0, 0, 0); }

static inline int system_connect(int fd, const struct sockaddr *address, socklen_t size) {
    return (int)system_call(SYS_connect, fd, (long)address, (long)size, 0, 0, 0);
}

static inline ssize_t system_send(int fd, const void *bytes, size_t size, int flags) {
    return system_call(SYS_sendto, fd, (long)bytes, (long)size, flags, 0, 0);
}

static inline ssize_t system_recv(int fd, void *out, size_t size, int flags) {
    return system_call(SYS_recvfrom, fd, (long)out, (long)size, flags, 0, 0);
}

static inline ssize_t system_recvmsg(int fd, struct msghdr *message, int flags) {
    return system_call(SYS_recvmsg, fd, (long)message, flags, 0, 0, 0);
}

static inline int system_clock_gettime(clockid_t clock, struct timespec *now) {
    return (int)system_call(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
}

/* A duration in ns as the kernel takes it. */
static inline struct timespec system_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND), .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

/* Sleeps for `ns`, or until a signal handler has run. The wall clock does not matter. */
static inline void system_sleep(uint64_t ns) {
    struct timespec duration = system_timespec(ns);
    (void)system_call(SYS_nanosleep, (long)&duration, 0, 0, 0, 0, 0);
}

/* Waits while the futex `word` has the value `seen`: until it is woken, a signal handler has run, or `ns` have passed.
 * `flag` is FUTEX_PRIVATE_FLAG where no other process uses the futex, else 0. */
static inline void system_futex_wait(const uint32_t *word, uint32_t seen, uint64_t ns, int flag) {
    struct timespec timeout = system_timespec(ns);
    (void)system_call(SYS_futex, (long)word, FUTEX_WAIT | flag, (long)seen, (long)&timeout, 0, 0);
}

static inline void system_futex_wake(const uint32_t *word, int waiters, int flag) {
    (void)system_call(SYS_futex, (long)word, FUTEX_WAKE | flag, waiters, 0, 0, 0);
}

/* Sets the thread's signal mask, a bit for each signal, and returns the former mask. */
static inline uint64_t system_set_signal_mask(uint64_t mask) {
    uint64_t before = 0;
    enum { SET_MASK = 2 }; /* SIG_SETMASK, for which <signal.h> would be included everywhere */
    (void)system_call(SYS_rt_sigprocmask, SET_MASK, (long)&mask, (long)&before, sizeof mask, 0, 0);
    return before;
}

/* NOLINTEND(performance-no-int-to-ptr,bugprone-easily-swappable-parameters) */

#endif
