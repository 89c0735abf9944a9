/* System calls that are no cancellation points. A thread that pthread_cancel() ended inside the C library's functions
 * of these names would leave a lock held or a launch counted, and the process would hang. They set errno. */
#ifndef VGPU_COMMON_NOCANCEL_H
#define VGPU_COMMON_NOCANCEL_H

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

static inline int nocancel_open(const char *path, int flags) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static inline void nocancel_close(int fd) { (void)syscall(SYS_close, fd); }

static inline ssize_t nocancel_read(int fd, void *out, size_t size) { return syscall(SYS_read, fd, out, size); }

static inline ssize_t nocancel_write(int fd, const void *bytes, size_t size) {
    return syscall(SYS_write, fd, bytes, size);
}

/* poll() with a timeout of 0. */
static inline int nocancel_poll_once(struct pollfd *polled, nfds_t count) {
    struct timespec timeout = {0};
    return (int)syscall(SYS_ppoll, polled, count, &timeout, NULL, 0);
}

static inline int nocancel_connect(int fd, const struct sockaddr *address, socklen_t size) {
    return (int)syscall(SYS_connect, fd, address, size);
}

static inline ssize_t nocancel_send(int fd, const void *bytes, size_t size, int flags) {
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

static inline ssize_t nocancel_recv(int fd, void *out, size_t size, int flags) {
    return syscall(SYS_recvfrom, fd, out, size, flags, NULL, NULL);
}

static inline ssize_t nocancel_recvmsg(int fd, struct msghdr *message, int flags) {
    return syscall(SYS_recvmsg, fd, message, flags);
}

/* Sleeps for `ns`, or until a signal handler has run. The wall clock does not matter. */
static inline void nocancel_sleep(uint64_t ns) {
    struct timespec duration = clock_timespec(ns);
    (void)syscall(SYS_nanosleep, &duration, NULL);
}

#endif
