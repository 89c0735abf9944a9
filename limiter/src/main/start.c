/* All that happens at a program's start; most programs never use CUDA and go on without another instruction of ours. */
#include <errno.h>
#include <sys/auxv.h>

#include "container/container.h"

/* A setuid program has rights that those who can write the region have not: it does not touch it before it uses CUDA.
 * A program may expect errno to be 0. */
__attribute__((constructor)) static void start(void) {
    if (getauxval(AT_SECURE)) return;
    int before = errno;
    container_clear_former_image();
    errno = before;
}
