/* Memory by pointer, and host memory, which must not be charged. */
#include "classes.h"

enum { PITCH_ROW = 1 << 20, PITCH_ELEMENT = 4 };

static void free_pointer(struct holding *held) { DO(cuMemFree_v2, held->pointer); }

static bool take_plain(struct holding *held) { return DO(cuMemAlloc_v2, &held->pointer, held->bytes); }

/* The form of CUDA 2, with sizes and addresses of 32 bits. */
static bool take_first_version(struct holding *held) {
    CUdeviceptr_v1 pointer = 0;
    bool taken = DO(cuMemAlloc, &pointer, (unsigned)held->bytes);
    held->pointer = pointer;
    return taken;
}

static void give_first_version(struct holding *held) { DO(cuMemFree, (CUdeviceptr_v1)held->pointer); }

static bool take_pitch(struct holding *held) {
    size_t pitch;
    size_t width = held->bytes < PITCH_ROW ? held->bytes : PITCH_ROW;
    return DO(cuMemAllocPitch_v2, &held->pointer, &pitch, width, held->bytes / width, PITCH_ELEMENT);
}

/* Managed memory is on the card only after the card has touched it. */
static bool take_managed(struct holding *held) {
    if (!DO(cuMemAllocManaged, &held->pointer, held->bytes, CU_MEM_ATTACH_GLOBAL)) return false;
    if (DO(cuMemsetD8_v2, held->pointer, 1, held->bytes) && DO(cuCtxSynchronize)) return true;
    free_pointer(held);
    return false;
}

static bool take_host(struct holding *held) { return DO(cuMemAllocHost_v2, &held->object, held->bytes); }

static void give_host(struct holding *held) { DO(cuMemFreeHost, held->object); }

const struct class linear_classes[] = {
    {"plain", take_plain, free_pointer}, {"plain v1", take_first_version, give_first_version},
    {"pitch", take_pitch, free_pointer}, {"managed", take_managed, free_pointer},
    {"host", take_host, give_host},      {0},
};
