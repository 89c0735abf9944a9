/* Children: forked ones, which have no CUDA, and programs that they start, which use memory of this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "walk.h"

static int await(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

/* All locks that other threads hold at the fork must be free in the child. */
static void forked(struct walker *walker) {
    size_t free, total;
    CUdeviceptr pointer;
    (void)fflush(walker->trace);
    pid_t child = fork();
    if (child == 0) {
        bool is_refused = cuda.cuMemGetInfo_v2(&free, &total) == CUDA_ERROR_NOT_INITIALIZED &&
                          cuda.cuMemAlloc_v2(&pointer, 100) == CUDA_ERROR_NOT_INITIALIZED &&
                          cuda.cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
        _exit(is_refused ? 0 : 7);
    }
    note(walker, "fork", (CUresult)await(child));
}

static void copy_lines(struct walker *walker, int file) {
    char bytes[4096];
    ssize_t count;
    while ((count = read(file, bytes, sizeof bytes)) != 0)
        if (count > 0) (void)fwrite(bytes, 1, (size_t)count, walker->trace);
}

int run_again(struct walker *walker, char *const arguments[]) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv("/proc/self/exe", arguments);
        _exit(9);
    }
    close(ends[1]);
    copy_lines(walker, ends[0]);
    close(ends[0]);
    return await(child);
}

static void program(struct walker *walker) {
    char seed[24];
    char *arguments[] = {"walk", seed, "1", "1", "20", "child", options.is_tight ? "tight" : "same", NULL};
    if (options.is_child) return;
    (void)snprintf(seed, sizeof seed, "%u", next(walker, 1000000));
    note(walker, "program", (CUresult)run_again(walker, arguments));
}

void to_text(char *text, const void *handle, size_t count) {
    const unsigned char *bytes = handle;
    for (size_t i = 0; i < count; i++) (void)sprintf(text + 2 * i, "%02x", bytes[i]);
}

void from_text(void *handle, const char *text, size_t count) {
    unsigned char *bytes = handle;
    for (size_t i = 0; i < count; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void imported(struct walker *walker) {
    CUipcMemHandle handle;
    CUdeviceptr pointer = 0;
    char text[TEXT_SIZE(handle)];
    char *arguments[] = {"walk", "import", text, NULL};
    if (options.is_child || DO(walker, cuMemAlloc_v2, &pointer, 3 * MIB) != CUDA_SUCCESS) return;
    if (DO(walker, cuIpcGetMemHandle, &handle, pointer) == CUDA_SUCCESS) {
        to_text(text, &handle, sizeof handle);
        note(walker, "import", (CUresult)run_again(walker, arguments));
    }
    DO(walker, cuMemFree_v2, pointer);
}

bool child_begins(void) {
    CUcontext context;
    return cuda.cuInit(0) == CUDA_SUCCESS && cuda.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
           cuda.cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

/* Run by the child of the step above. */
int import_memory(const char *hexadecimal) {
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    from_text(&handle, hexadecimal, sizeof handle);
    if (!child_begins()) return 3;
    if (cuda.cuIpcOpenMemHandle_v2(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS) return 4;
    return cuda.cuIpcCloseMemHandle(pointer) == CUDA_SUCCESS ? 0 : 5;
}

const struct step process_steps[] = {
    {"fork", forked, 2}, {"program", program, 1}, {"import", imported, 1}, {NULL, NULL, 0}};
