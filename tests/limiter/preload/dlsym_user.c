/* Looks up functions with dlsym, in any C library, and prints the results. Exit code 7. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    printf("puts %d, cuInit %d\n", dlsym(RTLD_DEFAULT, "puts") != NULL, dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    return 7;
}
