/* Prints what a preloaded library could have changed in this process, a line each: `report [cuda]`. With `cuda`, after
 * a context, an allocation and a look at NVML. Exit code 42. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static void print_signals(void) {
    sigset_t blocked;
    stack_t other;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    sigaltstack(NULL, &other);
    printf("alternate stack: %d\n", other.ss_flags);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0) continue;
        printf("signal %d: %s %x %d\n", number, action.sa_handler == SIG_DFL ? "default" : "other",
               (unsigned)action.sa_flags, sigismember(&blocked, number));
    }
}

/* Only counts are printed, because the numbers of descriptors and threads differ between runs. */
static void print_entries(const char *what, const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    printf("%s: %d\n", what, count);
}

static void print_limits(void) {
    struct rlimit limit;
    struct itimerval timer;
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (getrlimit(which, &limit) == 0)
            printf("limit %d: %llx %llx\n", which, (unsigned long long)limit.rlim_cur,
                   (unsigned long long)limit.rlim_max);
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        getitimer(which, &timer);
        printf("timer %d: %ld\n", which, (long)timer.it_value.tv_sec);
    }
}

static void print_environment(void) {
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "VGPU_", 5) != 0 && strncmp(*entry, "LD_PRELOAD=", 11) != 0) printf("%s\n", *entry);
}

/* KiB of all mappings and their files; the mappings of our library are listed separately. */
static void print_mappings(void) {
    char line[4096];
    unsigned long ours = 0, first, last;
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file)) {
        const char *name = strrchr(line, '/');
        sscanf(line, "%lx-%lx", &first, &last);
        if (name && strstr(name, "vgpushare")) ours += (last - first) / 1024;
        if (name && strstr(name, ".so") && !strstr(name, "vgpushare") && strstr(line, "r-xp"))
            printf("library %s", name);
    }
    fclose(file);
    (void)fprintf(stderr, "ours %lu KiB\n", ours);
}

static int use_cuda(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *context;
    unsigned long long pointer;
    int result = ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
    result |= ((int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
    result |= ((int (*)(void *))dlsym(cuda, "cuCtxSetCurrent"))(context);
    result |= ((int (*)(unsigned long long *, size_t))dlsym(cuda, "cuMemAlloc_v2"))(&pointer, 4096);
    return result | ((int (*)(unsigned long long))dlsym(cuda, "cuMemFree_v2"))(pointer);
}

int main(int count, char **arguments) {
    int error = errno;
    char folder[4096];
    (void)arguments;
    if (count > 1) printf("cuda: %d\n", use_cuda());
    printf("errno: %d\nsecure: %lu\nfolder: %s\nlocale: %s\n", error, getauxval(AT_SECURE),
           getcwd(folder, sizeof folder), setlocale(LC_ALL, NULL));
    printf("umask: %o\npriority: %d\n", umask(0), getpriority(PRIO_PROCESS, 0));
    print_signals();
    print_limits();
    print_entries("descriptors", "/proc/self/fd");
    print_entries("threads", "/proc/self/task");
    print_environment();
    print_mappings();
    return 42;
}
