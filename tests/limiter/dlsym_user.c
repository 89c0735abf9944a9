/* Looks functions up as any program may, of whichever C library: prints what it found. Exit code 7. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    printf("puts %d, cuInit %d\n", dlsym(RTLD_DEFAULT, "puts") != NULL, dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    return 7;
}
