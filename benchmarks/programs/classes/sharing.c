#include "sharing.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm.h"

#define SYS_pidfd_open_  434 /* not in the headers of glibc 2.17 */
#define SYS_pidfd_getfd_ 438

/* The content of a token: a descriptor of this process, or what the driver's functions fill in. */
struct token {
    pid_t owner;
    int file;
    union {
        CUipcMemHandle ipc;
        CUmemPoolPtrExportData pool;
    } of;
};

static struct token received;
static CUmemoryPool pool;

static void write_token(const struct token *token, char text[TOKEN_SIZE]) {
    const unsigned char *bytes = (const unsigned char *)token;
    for (size_t i = 0; i < sizeof *token; i++) (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static void read_token(const char *text) {
    unsigned char *bytes = (unsigned char *)&received;
    for (size_t i = 0; i < sizeof received; i++) (void)sscanf(text + 2 * i, "%2hhx", &bytes[i]);
}

/* Copies the descriptor of the other process. */
static int fetch_file(void) {
    int process = (int)syscall(SYS_pidfd_open_, received.owner, 0);
    int file = (int)syscall(SYS_pidfd_getfd_, process, received.file, 0);
    close(process);
    return file;
}

static bool make_pool(void) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    return pool || DO(cuMemPoolCreate, &pool, &properties);
}

static bool take_shareable(struct holding *held) {
    return make_pool() && DO(cuMemAllocFromPoolAsync, &held->pointer, held->bytes, pool, NULL) && DO(cuCtxSynchronize);
}

static void give_from_pool(struct holding *held) {
    DO(cuMemFreeAsync, held->pointer, NULL);
    DO(cuCtxSynchronize);
}

bool share_out(const char *how, const struct holding *held, char text[TOKEN_SIZE]) {
    struct token token = {.owner = getpid(), .file = -1};
    const CUmemAllocationHandleType posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    bool shared;
    if (strcmp(how, "ipc") == 0)
        shared = DO(cuIpcGetMemHandle, &token.of.ipc, held->pointer);
    else if (strcmp(how, "fd") == 0)
        shared = DO(cuMemExportToShareableHandle, &token.file, held->handle, posix, 0);
    else
        shared = DO(cuMemPoolExportToShareableHandle, &token.file, pool, posix, 0) &&
                 DO(cuMemPoolExportPointer, &token.of.pool, held->pointer);
    write_token(&token, text);
    return shared;
}

static bool open_ipc(struct holding *held) {
    return DO(cuIpcOpenMemHandle_v2, &held->pointer, received.of.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static void close_ipc(struct holding *held) { DO(cuIpcCloseMemHandle, held->pointer); }

static bool open_file(struct holding *held) {
    int file = fetch_file();
    bool imported = DO(cuMemImportFromShareableHandle, &held->handle, (void *)(uintptr_t)file,
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(file);
    return imported && vmm_map(held);
}

static void close_file(struct holding *held) {
    vmm_unmap(held);
    DO(cuMemRelease, held->handle);
}

static bool open_pool(struct holding *held) {
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int file = fetch_file();
    bool opened = DO(cuMemPoolImportFromShareableHandle, &pool, (void *)(uintptr_t)file,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) &&
                  DO(cuMemPoolSetAccess, pool, &access, 1) &&
                  DO(cuMemPoolImportPointer, &held->pointer, pool, &received.of.pool);
    close(file);
    return opened;
}

/* Memory that the exporter has freed stays until the importer destroys the pool. */
static void close_pool(struct holding *held) {
    give_from_pool(held);
    DO(cuMemPoolDestroy, pool);
    pool = NULL;
}

const struct class sharing_classes[] = {{"shareable pool", take_shareable, give_from_pool}, {0}};

static const struct class ways[] = {
    {"ipc", open_ipc, close_ipc}, {"fd", open_file, close_file}, {"pool", open_pool, close_pool}};

const struct class *share_in(const char *how, const char *token) {
    read_token(token);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, how) == 0) return &ways[i];
    return NULL;
}
