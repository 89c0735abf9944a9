/* Memory of the ordinary kind: cuMemAlloc and its siblings, host memory, copies and fills.
 *
 * Device addresses are made up and carry no bytes. An allocation up to 1 MiB shares 2 MiB pages with others of its
 * kind, a larger one is rounded up to pages: so a program's sums agree with a real card's. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA UINT64_C(0x20000000000)
#define SMALL_LIMIT SIM_MIB
#define PITCH 512

static Allocation *table; /* by address */
static size_t table_count;
static size_t table_size;
static CUdeviceptr arena_top = ARENA;

/* The first entry that begins above `address`. */
static size_t upper(CUdeviceptr address) {
    size_t low = 0;
    size_t high = table_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

Allocation *allocation_holding(CUdeviceptr address) {
    size_t at = upper(address);
    if (at == 0 || address - table[at - 1].address >= table[at - 1].size) {
        return NULL;
    }
    return &table[at - 1];
}

Allocation *allocation_at(CUdeviceptr address) {
    size_t at = upper(address);
    return at > 0 && table[at - 1].address == address ? &table[at - 1] : NULL;
}

static bool table_grow(void) {
    if (table_count < table_size) {
        return true;
    }
    size_t size = table_size == 0 ? 64 : table_size * 2;
    Allocation *grown = realloc(table, size * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    table = grown;
    table_size = size;
    return true;
}

CUresult allocation_add(Allocation allocation, CUdeviceptr *address) {
    if (!table_grow()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (allocation.address == 0) {
        uint64_t alignment = allocation.kind == KIND_DEVICE ? PAGE : SMALL_UNIT;
        allocation.address = round_up(arena_top, alignment);
        arena_top = allocation.address + round_up(allocation.size, SMALL_UNIT);
    }
    size_t at = upper(allocation.address);
    memmove(&table[at + 1], &table[at], (table_count - at) * sizeof *table);
    table[at] = allocation;
    table_count++;
    *address = allocation.address;
    return CUDA_SUCCESS;
}

static bool in_arena(const Allocation *allocation) {
    return allocation->kind == KIND_DEVICE || allocation->kind == KIND_POOL;
}

/* Addresses are given again once nothing above them lives, as a real driver reuses them. */
static void lower_top(void) {
    arena_top = ARENA;
    for (size_t i = table_count; i > 0; i--) {
        if (in_arena(&table[i - 1])) {
            arena_top = table[i - 1].address + round_up(table[i - 1].size, SMALL_UNIT);
            return;
        }
    }
}

static void give_back(const Allocation *allocation) {
    CUdevice device = allocation->context->device;
    switch (allocation->kind) {
    case KIND_DEVICE:
        device_release(device, allocation->charged);
        break;
    case KIND_SMALL:
        pages_give(allocation->address, allocation->charged);
        break;
    case KIND_POOL:
        pool_release(allocation->pool, allocation->charged);
        break;
    case KIND_MANAGED:
    case KIND_HOST:
        (void)munmap((void *)(uintptr_t)allocation->address, allocation->size);
        break;
    }
}

CUresult allocation_free(Allocation *allocation) {
    size_t at = (size_t)(allocation - table);
    give_back(allocation);
    memmove(&table[at], &table[at + 1], (table_count - at - 1) * sizeof *table);
    table_count--;
    lower_top();
    return CUDA_SUCCESS;
}

void allocations_free_of(CUcontext context) {
    for (size_t i = table_count; i > 0; i--) {
        if (table[i - 1].context == context) {
            (void)allocation_free(&table[i - 1]);
        }
    }
}

static CUresult allocate(CUcontext context, CUdeviceptr *dptr, uint64_t size) {
    Card card;
    if (size > UINT64_C(1) << 50) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!device_card(context->device, &card)) {
        return CUDA_ERROR_UNKNOWN; /* also where a page has room */
    }
    Allocation made = {.size = size, .kind = size > SMALL_LIMIT ? KIND_DEVICE : KIND_SMALL, .context = context};
    made.charged = round_up(size, made.kind == KIND_DEVICE ? PAGE : SMALL_UNIT);
    CUresult result = made.kind == KIND_DEVICE ? device_charge(context->device, made.charged)
                                               : pages_take(context->device, made.charged, &made.address);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = allocation_add(made, dptr);
    if (result != CUDA_SUCCESS) {
        give_back(&made);
    }
    return result;
}

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    CUcontext context;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(dptr != NULL && bytesize > 0, CUDA_ERROR_INVALID_VALUE);
    LEAVE(allocate(context, dptr, bytesize));
}

SIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                       unsigned int ElementSizeBytes) {
    CUcontext context;
    size_t bytes;
    ENTER();
    CUresult result = context_current(&context);
    size_t pitch = round_up(WidthInBytes, PITCH);
    bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(dptr != NULL && pPitch != NULL && element && pitch > 0 && Height > 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!__builtin_mul_overflow(pitch, Height, &bytes), CUDA_ERROR_OUT_OF_MEMORY);
    *pPitch = pitch;
    LEAVE(allocate(context, dptr, bytes));
}

SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) {
    ENTER();
    Allocation *found = allocation_at(dptr);
    if (dptr == 0) {
        LEAVE(CUDA_SUCCESS);
    }
    REQUIRE(found != NULL && found->kind != KIND_HOST, CUDA_ERROR_INVALID_VALUE);
    bool of_pool = found->kind == KIND_POOL;
    CUdevice device = found->context->device;
    CUresult result = allocation_free(found);
    if (of_pool) {
        pools_trim(device); /* it waits for the device, and so is a synchronisation point */
    }
    LEAVE(result);
}

static void *map_host(size_t size) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static CUresult allocate_host(CUdeviceptr *out, size_t size, Kind kind) {
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(out != NULL && size > 0, CUDA_ERROR_INVALID_VALUE);
    void *mapped = map_host(size);
    REQUIRE(mapped != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    Allocation made = {.address = (uintptr_t)mapped, .size = size, .kind = kind, .context = context};
    LEAVE(allocation_add(made, out));
}

/* Takes nothing of the card until it is touched there, which no simulated kernel does. */
SIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    ENTER();
    REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST, CUDA_ERROR_INVALID_VALUE);
    return allocate_host(dptr, bytesize, KIND_MANAGED);
}

SIM_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    CUdeviceptr address = 0;
    (void)Flags;
    ENTER();
    REQUIRE(pp != NULL, CUDA_ERROR_INVALID_VALUE);
    CUresult result = allocate_host(&address, bytesize, KIND_HOST);
    if (result == CUDA_SUCCESS) {
        *pp = (void *)(uintptr_t)address;
    }
    return result;
}

SIM_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
    return cuMemHostAlloc(pp, bytesize, 0);
}

SIM_EXPORT CUresult cuMemFreeHost(void *p) {
    ENTER();
    Allocation *found = allocation_at((uintptr_t)p);
    REQUIRE(found != NULL && found->kind == KIND_HOST, CUDA_ERROR_INVALID_VALUE);
    LEAVE(allocation_free(found));
}

SIM_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    (void)Flags;
    ENTER();
    LEAVE(p != NULL && bytesize > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

SIM_EXPORT CUresult cuMemHostUnregister(void *p) {
    ENTER();
    LEAVE(p != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    CUcontext context;
    Card card;
    ENTER();
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(free != NULL && total != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_card(context->device, &card), CUDA_ERROR_UNKNOWN);
    uint64_t used = ledger_used(card.uuid);
    *total = card.memory - card.reserved;
    *free = used < *total ? *total - used : 0;
    LEAVE(CUDA_SUCCESS);
}

/* The 32-bit forms of CUDA 2 work with contexts of that version alone, and nobody has one: so does the real driver. */
SIM_EXPORT CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) {
    (void)free;
    (void)total;
    return CUDA_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
    (void)dptr;
    (void)bytesize;
    return CUDA_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT CUresult cuMemFree(CUdeviceptr_v1 dptr) {
    (void)dptr;
    return CUDA_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    ENTER();
    const Allocation *found = allocation_holding(dptr);
    REQUIRE(found != NULL, CUDA_ERROR_NOT_FOUND);
    if (pbase != NULL) {
        *pbase = found->address;
    }
    if (psize != NULL) {
        *psize = found->size;
    }
    LEAVE(CUDA_SUCCESS);
}

static bool known(CUdeviceptr address, size_t size) {
    const Allocation *found = allocation_holding(address);
    if (found == NULL) {
        return mapping_holds(address, size);
    }
    return size <= found->size - (address - found->address);
}

/* Checks the device's side of a copy or fill; no byte moves. */
static CUresult touch(CUdeviceptr address, size_t size) {
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    LEAVE(size == 0 || known(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult touch_both(CUdeviceptr to, CUdeviceptr from, size_t size) {
    REQUIRE(size == 0 || known(from, size), CUDA_ERROR_INVALID_VALUE);
    return touch(to, size);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    ENTER();
    REQUIRE(srcHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(dstDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    ENTER();
    REQUIRE(dstHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    ENTER();
    return touch_both(dstDevice, srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
    (void)hStream;
    ENTER();
    REQUIRE(srcHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(dstDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    (void)hStream;
    ENTER();
    REQUIRE(dstHost != NULL || ByteCount == 0, CUDA_ERROR_INVALID_VALUE);
    return touch(srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    (void)hStream;
    ENTER();
    return touch_both(dstDevice, srcDevice, ByteCount);
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
    (void)uc;
    ENTER();
    return touch(dstDevice, N);
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
    (void)ui;
    ENTER();
    return touch(dstDevice, N * sizeof ui);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    (void)uc;
    (void)hStream;
    ENTER();
    return touch(dstDevice, N);
}

SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
    (void)ui;
    (void)hStream;
    ENTER();
    return touch(dstDevice, N * sizeof ui);
}
