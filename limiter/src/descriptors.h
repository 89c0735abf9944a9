/* The file descriptors by which memory was exported. Nobody tells us of their end, so they are looked at: a number is
 * taken for the same descriptor while it names the same file. It is NVIDIA's device for all of them, so a number that
 * was closed and came again as another of those is not told apart, and a copy of a descriptor is not known. Not locked:
 * its users lock. */
#ifndef VGPU_DESCRIPTORS_H
#define VGPU_DESCRIPTORS_H

#include "ledger.h"

/* A descriptor, open now, of the memory of that number; one of the same value is replaced. */
void descriptors_add(struct ledger *descriptors, int descriptor, uint64_t number);

/* The number of the memory that an open descriptor is of; 0 where it is unknown. */
uint64_t descriptors_find(const struct ledger *descriptors, int descriptor);

/* The descriptor is no longer the program's. */
void descriptors_remove(struct ledger *descriptors, int descriptor);

/* Whether a descriptor of that memory is open. */
bool descriptors_are_open(const struct ledger *descriptors, uint64_t number);

/* Removes those of that memory; whether there were any. */
bool descriptors_forget(struct ledger *descriptors, uint64_t number);

#endif
