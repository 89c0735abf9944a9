/* Kills or stops a process inside the region's lock, at a given instruction: `lock_holder STEPS kill|stop`.
 *
 * A child allocates and is single-stepped. STEPS instructions after it took the lock of the region (VGPU_REGION_FILE)
 * it is killed, or stopped until a line is read and then continued. Prints
 *
 *   {"inside":true}      false: the lock was released before that instruction, and the child ran to its end */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "classes/classes.h"
#include "processes.h"

/* The lock of region.h is a pthread_mutex_t, whose first word is its holder. */
enum { LOCK_AT = 56, REGION_SIZE = 4096, BYTES = 8 << 20 };

static const int *map_lock(void) {
    int file = open(getenv("VGPU_REGION_FILE"), O_RDONLY | O_CLOEXEC);
    const char *region = mmap(NULL, REGION_SIZE, PROT_READ, MAP_SHARED, file, 0);
    return region == MAP_FAILED ? NULL : (const int *)(const void *)(region + LOCK_AT);
}

static bool is_held(const int *lock) { return __atomic_load_n(lock, __ATOMIC_RELAXED) != 0; }

/* The first allocation is not stepped: it does what is done only once. */
static int ask(void) {
    struct holding first = {.bytes = BYTES};
    struct holding second = {.bytes = BYTES};
    const struct class *plain = find_class("plain");
    if (!start_cuda() || !plain->take(&first)) return 1;
    plain->give(&first);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    return plain->take(&second) ? 0 : 1;
}

static bool step(pid_t child) {
    int status;
    return ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
           WIFSTOPPED(status);
}

static bool step_to(pid_t child, const int *lock, long steps) {
    while (!is_held(lock))
        if (!step(child)) return false;
    while (steps-- > 0 && is_held(lock))
        if (!step(child)) return false;
    return is_held(lock);
}

static int leave_stopped(pid_t child) {
    int status;
    ptrace(PTRACE_DETACH, child, NULL, (void *)(long)SIGSTOP);
    say("{\"inside\":true}");
    hear();
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    return status;
}

static int leave_dead(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    say("{\"inside\":true}");
    return 0;
}

static int let_go(pid_t child) {
    int status;
    ptrace(PTRACE_DETACH, child, NULL, NULL);
    waitpid(child, &status, 0);
    say("{\"inside\":false}");
    return 0;
}

int main(int argc, char **argv) {
    const int *lock = getenv("VGPU_REGION_FILE") ? map_lock() : NULL;
    if (argc != 3 || !lock) return 2;
    pid_t child = fork_child();
    if (child == 0) _exit(ask());
    waitpid(child, NULL, 0);
    if (!step_to(child, lock, atol(argv[1]))) return let_go(child);
    return strcmp(argv[2], "stop") == 0 ? leave_stopped(child) : leave_dead(child);
}
