/* This process's rows in the region's table of exported and imported memory (region/memory_exports.h). The caller holds
 * no lock; a function that changes what is charged is called within a call (charge/reserve/charge.h). */
#ifndef VGPU_HOOKS_MEMORY_MEMORY_EXPORT_ROWS_H
#define VGPU_HOOKS_MEMORY_MEMORY_EXPORT_ROWS_H

#include <stddef.h>

#include "driver/abi.h"
#include "region/memory_exports.h"

/* A number that identifies an exported handle in every process. Not a cryptographic hash: a program that forges equal
 * keys only miscounts memory of its own container. */
uint64_t memory_export_rows_key(const void *handle, size_t size);

/* A number that identifies memory in every process; `number` is this process's own for it. Never 0. */
uint64_t memory_export_rows_group(uint64_t number);

/* The same for physical memory, by its memory number (books/physical/references.h). */
uint64_t memory_export_rows_physical_group(uint64_t number);

/* Adds a row of an exporter. Without one, importers are charged what NVML says. */
void memory_export_rows_add(struct region_memory_export row);

/* After this process has freed memory of a group that it exported: releases its charge, `managed` bytes of which are
 * marked as managed; what importers hold is charged to the card, or where NVML answers to them. */
void memory_export_rows_end(uint64_t group, int card, uint64_t bytes, uint64_t managed);

enum join_state {
    IMPORT_EXPORTED, /* a process of the container exports the memory, and is charged for it */
    IMPORT_ORPHANED, /* only importers of the container have it */
    IMPORT_UNKNOWN,  /* the table has no row of that key, or no room for another */
    IMPORT_LOCKED,   /* the lock cannot be had, or there is no region */
};

/* Adds an importer's row, before the driver's call, for memory that has a row already; then sets `row`. */
enum join_state memory_export_rows_join(uint64_t key, struct region_memory_export *row);

/* After the driver's call: charges `row`, whose key, card and bytes are set, of memory that no process of the container
 * exports: what NVML says, or where that fails, all bytes. Sets the row's group; 0 = the table is full. False if NVML
 * fails and the table is full, or the container is over its limit: the caller undoes the import, and drops the group.
 */
bool memory_export_rows_charge(struct region_memory_export *row, const uint8_t uuid[UUID_SIZE]);

/* Notes that memory was exported or imported which cannot have a row. */
void memory_export_rows_note_missing(void);

/* Takes a reference of this process away, after it has closed the memory. */
void memory_export_rows_drop(uint64_t group);

#endif
