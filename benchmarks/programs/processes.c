#include "processes.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "calls.h"

bool start_cuda(void) {
    CUcontext context;
    return calls_open() && DO(cuInit, 0) && DO(cuDevicePrimaryCtxRetain, &context, 0) && DO(cuCtxSetCurrent, context);
}

pid_t fork_child(void) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    return 0;
}

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)putchar('\n');
    (void)fflush(stdout);
}

bool hear(void) {
    char line[64];
    return fgets(line, sizeof line, stdin) != NULL;
}
