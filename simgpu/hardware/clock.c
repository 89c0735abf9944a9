#include "hardware/clock.h"

#include <time.h>

uint64_t clock_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void clock_pass_ns(uint64_t ns) {
    uint64_t until = clock_now_ns() + ns;
    while (clock_now_ns() < until) continue;
}
