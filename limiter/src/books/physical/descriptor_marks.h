/* Marks on file descriptors by which memory was exported. A descriptor that a process receives says nothing about the
 * memory behind it: fstat() shows NVIDIA's device for every one. So the exporter locks a byte of the device's file far
 * beyond its end, by a lock that belongs to the open file (F_OFD_SETLK), and the place of that byte is the mark. Every
 * copy of the descriptor, in whatever process, shows the lock in /proc/self/fdinfo. No program waits for this lock. */
#ifndef VGPU_BOOKS_PHYSICAL_DESCRIPTOR_MARKS_H
#define VGPU_BOOKS_PHYSICAL_DESCRIPTOR_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* A mark, never 0, that is derived from a number. */
uint64_t descriptor_marks_of(uint64_t number);

/* Marks an open descriptor; false where the kernel does not allow it. */
bool descriptor_marks_put(int descriptor, uint64_t mark);

/* The mark of a descriptor; 0 where it has none, or there is no /proc. */
uint64_t descriptor_marks_get(int descriptor);

#endif
