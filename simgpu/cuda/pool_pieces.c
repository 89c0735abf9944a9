/* What exported pointers keep of a pool (measured on an H200, driver 580): the blocks of such a pointer are held by its
 * exporter's handle of the pool, by each open descriptor of the pool, and by each importer's handle that took the
 * pointer, until those are gone; an importer's that is destroyed with pointers not freed, until the process is. Freed and trimmed they are in nobody's figure, but on the card; what is allocated at
 * the same addresses is other memory, and replaces them when it is exported in its turn. Here each exported pointer has
 * blocks of its own, as far as the pool has any that are no other's. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

struct Piece {
    Piece *next;
    uint64_t share;
    uint64_t bytes;
    CUdeviceptr address; /* of the pointer */
    uint64_t size;
    bool reserved; /* part of what its maker's pool has reserved, and shown with it */
    bool held;     /* by the handle */
};

uint64_t pieces_reserved(const struct CUmemPoolHandle_st *pool) {
    uint64_t sum = 0;
    for (const Piece *piece = pool->pieces; piece != NULL; piece = piece->next) {
        sum += piece->reserved ? piece->bytes : 0;
    }
    return sum;
}

static Piece *piece_of(CUmemoryPool pool, const Allocation *allocation) {
    for (Piece *piece = pool->pieces; piece != NULL; piece = piece->next) {
        if (piece->address == allocation->address && piece->size == allocation->size) {
            return piece;
        }
    }
    return NULL;
}

static Piece *add(CUmemoryPool pool, Piece wanted) {
    Piece *made = malloc(sizeof *made);
    if (made != NULL) {
        *made = wanted;
        made->next = pool->pieces;
        pool->pieces = made;
    }
    return made;
}

static uint64_t lesser(uint64_t one, uint64_t other) { return one < other ? one : other; }

static uint64_t greater(uint64_t one, uint64_t other) { return one > other ? one : other; }

/* Bytes of the blocks that the piece has in common with others. */
static uint64_t common(const Piece *piece, CUdeviceptr address, uint64_t size) {
    uint64_t begin = greater(piece->address / POOL_BLOCK, address / POOL_BLOCK);
    uint64_t end = lesser((piece->address + piece->size - 1) / POOL_BLOCK, (address + size - 1) / POOL_BLOCK);
    return end < begin ? 0 : (end - begin + 1) * POOL_BLOCK;
}

/* What was kept there before is not any more. */
static void replace(CUmemoryPool pool, const Allocation *by) {
    for (Piece *piece = pool->pieces; piece != NULL; piece = piece->next) {
        if (!piece->reserved) {
            piece->bytes -= lesser(piece->bytes, common(piece, by->address, by->size));
            ledger_share_shrink(piece->share, piece->bytes);
        }
    }
}

static CUresult make(CUmemoryPool pool, const Allocation *allocation, uint64_t *share) {
    SimShare held;
    uint64_t left = pool->reserved - pieces_reserved(pool);
    uint64_t wanted = round_up(allocation->size, POOL_BLOCK);
    Piece made = {.address = allocation->address, .size = allocation->size, .reserved = true, .held = true};
    made.bytes = lesser(wanted, left);
    replace(pool, allocation);
    made.share = ledger_share(device_at(pool->device)->uuid, made.bytes, pool->share);
    if (made.share == 0 || !ledger_share_hold(made.share, UNSEEN, &held) || add(pool, made) == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *share = made.share;
    return CUDA_SUCCESS;
}

/* The share stands for the new memory. */
static void renew(CUmemoryPool pool, Piece *piece) {
    SimShare held;
    if (!piece->reserved && ledger_share_hold(piece->share, SEEN, &held)) {
        device_release(pool->device, piece->bytes);
        piece->reserved = true;
    }
}

CUresult piece_export(CUmemoryPool pool, const Allocation *allocation, uint64_t *share) {
    Piece *known = piece_of(pool, allocation);
    if (known == NULL) {
        return make(pool, allocation, share);
    }
    renew(pool, known);
    *share = known->share;
    return CUDA_SUCCESS;
}

CUresult piece_import(CUmemoryPool pool, uint64_t share) {
    SimShare held;
    for (const Piece *piece = pool->pieces; piece != NULL; piece = piece->next) {
        if (piece->share == share) {
            return CUDA_SUCCESS;
        }
    }
    if (!ledger_share_hold(share, UNSEEN, &held)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return add(pool, (Piece){.share = share, .held = true}) != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_freed(CUmemoryPool pool, const Piece *piece) {
    const Allocation *found = allocation_at(piece->address);
    return pool->used == 0 || found == NULL || found->kind != KIND_POOL || found->pool != pool;
}

uint64_t pieces_hide(CUmemoryPool pool, uint64_t most) {
    uint64_t hidden = 0;
    for (Piece *piece = pool->pieces; piece != NULL; piece = piece->next) {
        if (piece->reserved && piece->bytes <= most - hidden && is_freed(pool, piece)) {
            piece->reserved = false;
            hidden += piece->bytes;
            ledger_share_drop(piece->share, SEEN);
        }
    }
    return hidden;
}

void pieces_let_go(CUmemoryPool pool) {
    for (Piece *piece = pool->pieces; piece != NULL; piece = piece->next) {
        if (piece->held) {
            ledger_share_drop(piece->share, UNSEEN);
        }
        piece->held = false;
    }
}

void pieces_free(CUmemoryPool pool) {
    while (pool->pieces != NULL) {
        Piece *first = pool->pieces;
        pool->pieces = first->next;
        free(first);
    }
}
