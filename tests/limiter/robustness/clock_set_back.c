/* Preloaded: what a program sees whose wall clock is set back by an hour each time after the program has read it. The
 * program reads an hour more than the kernel has, and its waits until a time of the wall clock take an hour longer. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += 3600;
    return result;
}
