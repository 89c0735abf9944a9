#include "cuda/allocation/allocation.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/context/context.h"
#include "cuda/device/device_memory.h"

#define ARENA UINT64_C(0x20000000000)

static struct allocation *table; /* by address */
static size_t table_count;
static size_t table_size;
static CUdeviceptr arena_top = ARENA;

/* Index of the first entry that begins above `address`. */
static size_t index_above(CUdeviceptr address) {
    size_t low = 0;
    size_t high = table_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct allocation *allocation_holding(CUdeviceptr address) {
    size_t at = index_above(address);
    if (at == 0 || address - table[at - 1].address >= table[at - 1].size) return NULL;
    return &table[at - 1];
}

struct allocation *allocation_at(CUdeviceptr address) {
    size_t at = index_above(address);
    return at > 0 && table[at - 1].address == address ? &table[at - 1] : NULL;
}

struct allocation *allocation_imported(enum allocation_kind kind, uint64_t shared_id, CUdeviceptr origin) {
    for (size_t i = 0; i < table_count; i++)
        if (table[i].kind == kind && table[i].shared_id == shared_id && table[i].origin == origin) return &table[i];
    return NULL;
}

static bool table_grow(void) {
    if (table_count < table_size) return true;
    size_t size = table_size == 0 ? 64 : table_size * 2;
    struct allocation *grown = realloc(table, size * sizeof *grown);
    if (!grown) return false;
    table = grown;
    table_size = size;
    return true;
}

static uint64_t alignment_of(const struct allocation *allocation) {
    bool of_block = allocation->kind == KIND_POOL && allocation->size >= POOL_BLOCK;
    if (of_block || allocation->kind == KIND_POOL_IPC) return POOL_BLOCK;
    return allocation->kind == KIND_DEVICE ? PAGE : SMALL_UNIT;
}

CUresult allocation_add(struct allocation allocation, CUdeviceptr *address) {
    if (!table_grow()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (allocation.kind != KIND_GRAPH) allocation.device = allocation.context->device;
    if (allocation.address == 0) {
        allocation.address = round_up(arena_top, alignment_of(&allocation));
        arena_top = allocation.address + round_up(allocation.size, SMALL_UNIT);
    }
    size_t at = index_above(allocation.address);
    memmove(&table[at + 1], &table[at], (table_count - at) * sizeof *table);
    table[at] = allocation;
    table_count++;
    *address = allocation.address;
    return CUDA_SUCCESS;
}

static bool in_arena(const struct allocation *allocation) {
    return allocation->kind != KIND_SMALL && allocation->kind != KIND_MANAGED && allocation->kind != KIND_HOST;
}

/* An address is used again once no allocation above it is left. A real driver reuses addresses too. */
static void lower_top(void) {
    arena_top = ARENA;
    for (size_t i = table_count; i > 0; i--) {
        if (in_arena(&table[i - 1])) {
            arena_top = table[i - 1].address + round_up(table[i - 1].size, SMALL_UNIT);
            return;
        }
    }
}

void allocation_remove(struct allocation *allocation) {
    size_t at = (size_t)(allocation - table);
    memmove(&table[at], &table[at + 1], (table_count - at - 1) * sizeof *table);
    table_count--;
    lower_top();
}

void allocations_visit(void (*visit)(struct allocation *allocation, CUcontext context), CUcontext context) {
    for (size_t i = table_count; i > 0; i--) visit(&table[i - 1], context);
}
