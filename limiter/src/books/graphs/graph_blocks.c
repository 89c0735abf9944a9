#include "books/graphs/graph_blocks.h"

/* Smallest block, and unit of all block sizes (measured on an H200, driver 580). */
#define BLOCK (32ULL << 20)

static uint64_t round_down(uint64_t address) { return address / BLOCK * BLOCK; }

void graph_blocks_add(struct graph_blocks *blocks, uint64_t address, uint64_t bytes) {
    if (address + bytes <= blocks->end) return;
    uint64_t block_bytes = round_down(bytes + BLOCK - 1);
    uint64_t begin = address > blocks->end ? round_down(address) : blocks->end;
    blocks->sum += block_bytes;
    blocks->end = begin + block_bytes;
}
