/* The constructor, which runs when a program starts. It is all that most programs run of this library, because they
 * never use CUDA. */
#include <errno.h>
#include <sys/auxv.h>

#include "container/container.h"

/* A setuid program does not touch the region at its start: less privileged processes can write the region
 * (docs/adr/0017). errno is restored, because a program may expect it to be 0 in main(). */
__attribute__((constructor)) static void start(void) {
    if (getauxval(AT_SECURE)) return;
    int saved_errno = errno;
    container_clear_former_image();
    errno = saved_errno;
}
