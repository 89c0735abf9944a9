/* Measures what a process keeps of the card while it is checkpointed: `checkpoint`.
 *
 * A child allocates 1 GiB in each of three ways and waits. The parent locks, checkpoints, restores and unlocks the
 * child, and prints for each call the result, NVML's used memory of the card and NVML's figure of the child. Needs
 * driver 570 (CUDA 12.8) or newer. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "card_usage.h"
#include "processes.h"

#define GIB ((size_t)1 << 30)

static bool allocate(void) {
    CUdeviceptr linear;
    CUdeviceptr pooled;
    CUdeviceptr managed;
    return DO(cuMemAlloc_v2, &linear, GIB) && DO(cuMemsetD8_v2, linear, 1, GIB) &&
           DO(cuMemAllocAsync, &pooled, GIB, NULL) && DO(cuMemAllocManaged, &managed, GIB, CU_MEM_ATTACH_GLOBAL) &&
           DO(cuMemsetD8_v2, managed, 1, GIB) && DO(cuCtxSynchronize);
}

/* Writes a byte once it holds its memory, and ends when its standard input ends. */
static int hold(int ready, int end) {
    char byte = 0;
    if (!start_cuda() || !allocate() || write(ready, &byte, 1) != 1) return 1;
    (void)read(end, &byte, 1);
    return DO(cuCtxSynchronize) ? 0 : 1;
}

static void row(const char *call, CUresult result, pid_t child) {
    struct card_usage now = card_usage_now(child);
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    (void)calls.cuCheckpointProcessGetState_(child, &state);
    (void)printf("| %-12s | %6d | %5d | %12.3f | %12.3f |\n", call, (int)result, (int)state, card_usage_mib(now.card),
                 card_usage_mib(now.process));
    (void)fflush(stdout);
}

static int measure(pid_t child) {
    CUcheckpointLockArgs lock = {0};
    CUcheckpointCheckpointArgs checkpoint = {0};
    CUcheckpointRestoreArgs restore = {0};
    CUcheckpointUnlockArgs unlock = {0};
    if (!calls_open() || !card_usage_open() || calls.cuInit_(0) != CUDA_SUCCESS) return 1;
    (void)puts("| call | result | state | NVML card MiB | NVML child MiB |\n|---|---|---|---|---|");
    row("before", CUDA_SUCCESS, child);
    row("lock", calls.cuCheckpointProcessLock_(child, &lock), child);
    row("checkpoint", calls.cuCheckpointProcessCheckpoint_(child, &checkpoint), child);
    row("restore", calls.cuCheckpointProcessRestore_(child, &restore), child);
    row("unlock", calls.cuCheckpointProcessUnlock_(child, &unlock), child);
    return 0;
}

int main(void) {
    int ready[2];
    int end[2];
    char byte;
    int status = 1;
    if (pipe(ready) != 0 || pipe(end) != 0) return 1;
    pid_t child = fork_child();
    if (child == 0) _exit(hold(ready[1], end[0]));
    (void)close(ready[1]);
    int result = child > 0 && read(ready[0], &byte, 1) == 1 ? measure(child) : 1;
    (void)write(end[1], "", 1);
    (void)waitpid(child, &status, 0);
    (void)printf("child ended with %d\n", status);
    return result;
}
