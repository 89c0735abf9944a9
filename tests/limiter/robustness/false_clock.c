/* Preloaded: a program whose clocks are wrong, as libfaketime makes them, in the way that FALSE_CLOCK says. The simulated
 * driver stands in for a card, so it alone reads the true time. With FALSE_CLOCK_TO only the libraries of that name read
 * wrong clocks. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CLOCKS = 16, FACTOR = 5 };
#define SECOND 1000000000LL
#define DAYS   (10 * 86400LL * SECOND)

static long long changed(const char *way, long long first, long long now) {
    if (strcmp(way, "fast") == 0) return first + (now - first) * FACTOR;
    if (strcmp(way, "slow") == 0) return first + (now - first) / FACTOR;
    if (strcmp(way, "frozen") == 0) return first;
    if (strcmp(way, "ahead") == 0) return now + DAYS;
    return strcmp(way, "behind") == 0 ? now - DAYS : now;
}

static int is_told_the_truth(void *caller) {
    Dl_info object;
    const char *only = getenv("FALSE_CLOCK_TO");
    if (!dladdr(caller, &object) || !object.dli_fname) return only != NULL;
    if (only) return !strstr(object.dli_fname, only);
    return strstr(object.dli_fname, "libcuda.so") || strstr(object.dli_fname, "libnvidia-ml.so");
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static long long first[CLOCKS];
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    const char *way = getenv("FALSE_CLOCK");
    if (!way || clock < 0 || clock >= CLOCKS || is_told_the_truth(__builtin_return_address(0))) return result;
    long long now = time->tv_sec * SECOND + time->tv_nsec;
    if (!first[clock]) first[clock] = now;
    now = changed(way, first[clock], now);
    *time = (struct timespec){now / SECOND, now % SECOND};
    return result;
}
