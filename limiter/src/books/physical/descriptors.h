/* File descriptors by which memory was exported. The exported memory lives as long as the open file behind a
 * descriptor, in whatever process. No call reports the end of that file, and fstat() shows NVIDIA's device for every
 * one. So each descriptor is added to an epoll set: the set does not keep the file open, and the file leaves the set
 * when its last descriptor is closed. A file that epoll does not accept is told by inode and file position instead.
 *
 * Not locked: the caller holds LOCK_PHYSICAL_MEMORY. `number` is a memory number (books/physical/references.h). */
#ifndef VGPU_BOOKS_PHYSICAL_DESCRIPTORS_H
#define VGPU_BOOKS_PHYSICAL_DESCRIPTORS_H

#include "books/hash_table.h"

/* Adds an open descriptor of the memory with this number; no effect for number 0. */
void descriptors_add(struct hash_table *descriptors, int descriptor, uint64_t number);

/* The memory number of an open descriptor; 0 where it is unknown. */
uint64_t descriptors_find(const struct hash_table *descriptors, int descriptor);

/* Removes a descriptor that no longer belongs to the program. */
void descriptors_remove(struct hash_table *descriptors, int descriptor);

/* Whether the file behind a descriptor of the memory is open in any process. */
bool descriptors_are_open(const struct hash_table *descriptors, uint64_t number);

/* Removes all descriptors of the memory; true where there were any. */
bool descriptors_forget(struct hash_table *descriptors, uint64_t number);

/* Removes all descriptors, in the child of a fork. */
void descriptors_forget_all(struct hash_table *descriptors);

#endif
