/* External memory. No other API is used: the imported descriptor is of memory by handle. */
#include <unistd.h>

#include "vmm.h"

static bool import(struct holding *held, int file) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle = {.fd = file}, .size = held->bytes};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {.size = held->bytes};
    if (!DO(cuImportExternalMemory, (CUexternalMemory *)&held->object, &memory)) return false;
    if (DO(cuExternalMemoryGetMappedBuffer, &held->pointer, held->object, &whole)) return true;
    DO(cuDestroyExternalMemory, held->object);
    return false;
}

/* A successful import consumes the descriptor. */
static bool take_external(struct holding *held) {
    int file = -1;
    if (!vmm_create(held)) return false;
    bool exported = DO(cuMemExportToShareableHandle, &file, held->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    bool imported = exported && import(held, file);
    if (exported && !imported) close(file);
    DO(cuMemRelease, held->handle);
    return imported;
}

static void give_external(struct holding *held) {
    DO(cuMemFree_v2, held->pointer);
    DO(cuDestroyExternalMemory, held->object);
}

const struct class external_classes[] = {{"external memory", take_external, give_external}, {0}};
