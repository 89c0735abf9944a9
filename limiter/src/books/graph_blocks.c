#include "books/graph_blocks.h"

#define BLOCK (32ULL << 20)

static uint64_t down(uint64_t address) { return address / BLOCK * BLOCK; }

void graph_blocks_add(struct graph_blocks *blocks, uint64_t address, uint64_t bytes) {
    if (address + bytes <= blocks->end) return;
    uint64_t taken = down(bytes + BLOCK - 1);
    uint64_t begin = address > blocks->end ? down(address) : blocks->end;
    blocks->sum += taken;
    blocks->end = begin + taken;
}
