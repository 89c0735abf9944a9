/* The table of what this process allocated, by address, whatever it is of. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA UINT64_C(0x20000000000)

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

Allocation *allocation_imported(Kind kind, uint64_t share, CUdeviceptr origin) {
    for (size_t i = 0; i < table_count; i++) {
        if (table[i].kind == kind && table[i].share == share && table[i].origin == origin) {
            return &table[i];
        }
    }
    return NULL;
}

bool allocation_is_freeable(const Allocation *allocation) {
    return allocation->kind != KIND_HOST && allocation->kind != KIND_IPC;
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

static uint64_t alignment_of(const Allocation *allocation) {
    bool of_block = allocation->kind == KIND_POOL && allocation->size >= POOL_BLOCK;
    if (of_block || allocation->kind == KIND_POOL_IPC) {
        return POOL_BLOCK;
    }
    return allocation->kind == KIND_DEVICE ? PAGE : SMALL_UNIT;
}

CUresult allocation_add(Allocation allocation, CUdeviceptr *address) {
    if (!table_grow()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (allocation.kind != KIND_GRAPH) {
        allocation.device = allocation.context->device;
    }
    if (allocation.address == 0) {
        allocation.address = round_up(arena_top, alignment_of(&allocation));
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
    return allocation->kind != KIND_SMALL && allocation->kind != KIND_MANAGED && allocation->kind != KIND_HOST;
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

void allocation_give_back(const Allocation *allocation) {
    CUdevice device = allocation->device;
    switch (allocation->kind) {
        case KIND_DEVICE:
            device_give(device, allocation->charged, allocation->share);
            break;
        case KIND_SMALL:
            pages_give(allocation->address, allocation->charged);
            break;
        case KIND_POOL:
            pool_release(allocation->pool, allocation->charged);
            break;
        case KIND_GRAPH:
            graph_memory_release(device, allocation->charged);
            break;
        case KIND_IPC:
        case KIND_EXTERNAL:
            ledger_share_drop(allocation->share, allocation->sight);
            break;
        case KIND_POOL_IPC:
            allocation->pool->imports--;
            pool_drop_if_done(allocation->pool);
            break;
        case KIND_MANAGED:
        case KIND_HOST:
            (void)munmap((void *)(uintptr_t)allocation->address, allocation->size);
            break;
    }
}

CUresult allocation_free(Allocation *allocation) {
    size_t at = (size_t)(allocation - table);
    allocation_give_back(allocation);
    memmove(&table[at], &table[at + 1], (table_count - at - 1) * sizeof *table);
    table_count--;
    lower_top();
    return CUDA_SUCCESS;
}

/* A pool's memory outlives a context that is not the primary one (measured on an H200, driver 580). */
static bool ends_with(const Allocation *allocation, CUcontext context) {
    bool of_pool = allocation->kind == KIND_POOL && allocation->device == context->device;
    bool left = of_pool && allocation->context == NULL;
    return context->primary ? left || allocation->context == context : !of_pool && allocation->context == context;
}

void allocations_free_of(CUcontext context) {
    for (size_t i = table_count; i > 0; i--) {
        Allocation *each = &table[i - 1];
        if (ends_with(each, context)) {
            (void)allocation_free(each);
        } else if (each->context == context) {
            each->context = NULL;
        }
    }
}
