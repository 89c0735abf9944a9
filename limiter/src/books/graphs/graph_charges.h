/* Bytes that are charged for the memory of each device's graphs. Every function takes LOCK_GRAPH_CHARGES. Pure apart
 * from that. */
#ifndef VGPU_BOOKS_GRAPHS_GRAPH_CHARGES_H
#define VGPU_BOOKS_GRAPHS_GRAPH_CHARGES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether anything is charged for a device's graphs. */
bool graph_charges_has(int device);

/* Notes that a device's graphs are charged what they hold (`reserved_now`) on the region's row `card`, and returns by
 * how much the former charge and `reserved_ahead` exceed that. If they are less, another thread has reserved the
 * difference, or the next measurement charges it. */
uint64_t graph_charges_set(int device, int card, uint64_t reserved_ahead, uint64_t reserved_now);

/* Bytes that are charged on the region's row `card`. */
uint64_t graph_charges_on(int card);

#endif
