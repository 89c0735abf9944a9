/* The file descriptors by which memory was exported. The memory lives as long as the open file behind one, wherever it
 * was sent or copied to; nobody tells us of its end, and it is NVIDIA's device for all of them. So each is put into an
 * epoll set of ours, which does not keep it alive and which it leaves with its last descriptor. What cannot be polled
 * is told by its file and position instead. Not locked: its users lock. */
#ifndef VGPU_BOOKS_DESCRIPTORS_H
#define VGPU_BOOKS_DESCRIPTORS_H

#include "books/hash_table.h"

/* A descriptor of the memory of that number, open now. */
void descriptors_add(struct hash_table *descriptors, int descriptor, uint64_t number);

/* The number of the memory that an open descriptor is of; 0 where it is unknown. */
uint64_t descriptors_find(const struct hash_table *descriptors, int descriptor);

/* The descriptor is no longer the program's. */
void descriptors_remove(struct hash_table *descriptors, int descriptor);

/* Whether a descriptor of that memory is open, here or anywhere. */
bool descriptors_are_open(const struct hash_table *descriptors, uint64_t number);

/* Removes those of that memory; whether there were any. */
bool descriptors_forget(struct hash_table *descriptors, uint64_t number);

/* In the child of a fork. */
void descriptors_forget_all(struct hash_table *descriptors);

#endif
