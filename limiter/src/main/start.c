/* The constructor, which runs when a program starts. It is all that most programs run of this library, because they
 * never use CUDA. */
#include "common/clock.h"
#include "container/container.h"
#include "loader/libc.h"

/* A setuid program does not touch the region at its start: less privileged processes can write the region
 * (docs/adr/0017). Nothing here sets errno, because a program may expect it to be 0 in main(). */
__attribute__((constructor)) static void start(void) {
    clock_use_vdso(LIBC(getauxval)(AT_SYSINFO_EHDR));
    if (!LIBC(getauxval)(AT_SECURE)) container_clear_former_image();
}
