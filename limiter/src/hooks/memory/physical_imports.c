#include "hooks/memory/physical_imports.h"

#include "books/physical/descriptor_marks.h"
#include "books/physical/physical_memory.h"
#include "charge/reconcile/reconcile.h"
#include "container/container.h"

/* Memory that was imported before has its exporter's row already. */
void physical_imports_export(CUmemGenericAllocationHandle memory, int descriptor) {
    struct exported_memory exported = physical_memory_export(memory, descriptor);
    if (exported.number == 0) return;
    uint64_t group = exported.group ? exported.group : memory_export_rows_physical_group(exported.number);
    uint64_t mark = descriptor_marks_of(group);
    if (!descriptor_marks_put(descriptor, mark)) memory_export_rows_note_missing();
    if (exported.group) return;
    memory_export_rows_add((struct region_memory_export){
        .key = mark, .group = group, .bytes = exported.bytes, .card = (uint32_t)exported.card});
}

enum join_state physical_imports_join(int descriptor, struct region_memory_export *row) {
    uint64_t mark = descriptor_marks_get(descriptor);
    return mark ? memory_export_rows_join(mark, row) : IMPORT_UNKNOWN;
}

/* The size of memory without a row is unknown, so only NVML can charge it. */
void physical_imports_finish(enum join_state joined, const struct region_memory_export *row, CUresult result) {
    if (result != CUDA_SUCCESS && joined != IMPORT_UNKNOWN) memory_export_rows_drop(row->group);
    if (result == CUDA_SUCCESS && joined == IMPORT_UNKNOWN) memory_export_rows_note_missing();
    if (result == CUDA_SUCCESS && joined == IMPORT_ORPHANED)
        reconcile_own(container_region()->cards[row->card].uuid, 1);
}
