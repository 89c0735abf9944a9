#include "driver/relocations.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/system_calls.h"
#include "loader/libc.h"

#if defined(__x86_64__)
enum { ABSOLUTE = R_X86_64_64, DATA = R_X86_64_GLOB_DAT, CALL = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { ABSOLUTE = R_AARCH64_ABS64, DATA = R_AARCH64_GLOB_DAT, CALL = R_AARCH64_JUMP_SLOT };
#endif

struct object {
    ElfW(Addr) base;
    ElfW(Addr) first, end;                 /* addresses of the loaded image */
    ElfW(Addr) protected_first, protected; /* the part that the loader has made read-only, and its end */
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2]; /* of data and of calls */
    size_t sizes[2];              /* bytes of the tables */
    relocations_replacement replacement;
};

/* NOLINTBEGIN(performance-no-int-to-ptr): addresses in ELF tables are numbers */

/* glibc relocates the addresses in the dynamic section of a loaded object; musl leaves offsets from `base`. */
static void *address_of(const struct object *object, ElfW(Addr) value) {
    return (void *)(value < object->base ? object->base + value : value);
}

static void read_dynamic(struct object *object, const ElfW(Dyn) * dynamic) {
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB) object->symbols = address_of(object, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_STRTAB) object->strings = address_of(object, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_RELA) object->tables[0] = address_of(object, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_RELASZ) object->sizes[0] = dynamic->d_un.d_val;
        if (dynamic->d_tag == DT_JMPREL) object->tables[1] = address_of(object, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_PLTRELSZ) object->sizes[1] = dynamic->d_un.d_val;
    }
}

static void read_segment(struct object *object, const ElfW(Phdr) * segment) {
    ElfW(Addr) first = object->base + segment->p_vaddr;
    ElfW(Addr) end = first + segment->p_memsz;
    if (segment->p_type == PT_LOAD && (object->first == 0 || first < object->first)) object->first = first;
    if (segment->p_type == PT_LOAD && end > object->end) object->end = end;
    if (segment->p_type == PT_GNU_RELRO) object->protected_first = first;
    if (segment->p_type == PT_GNU_RELRO) object->protected = end;
    if (segment->p_type == PT_DYNAMIC) read_dynamic(object, (const ElfW(Dyn) *)first);
}

static bool is_ours(const struct object *object) {
    ElfW(Addr) here = (ElfW(Addr)) & relocations_bind;
    return here >= object->first && here < object->end;
}

static bool is_relevant(const char *name) {
    return strncmp(name, "cu", 2) == 0 || strncmp(name, "dl", 2) == 0 || strncmp(name, "nvml", 4) == 0;
}

static void write_slot(const struct object *object, void **slot, void *address) {
    size_t page_size = LIBC(getauxval)(AT_PAGESZ);
    ElfW(Addr) place = (ElfW(Addr))slot;
    void *page = (void *)(place / page_size * page_size);
    bool is_protected = place >= object->protected_first && place < object->protected / page_size * page_size;
    if (is_protected && system_protect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(slot, address, __ATOMIC_RELAXED);
    if (is_protected) system_protect(page, page_size, PROT_READ);
}

static bool is_reference(const ElfW(Rela) * entry) {
    unsigned long kind = ELF64_R_TYPE(entry->r_info);
    bool is_known = kind == DATA || kind == CALL || (kind == ABSOLUTE && entry->r_addend == 0);
    return is_known && ELF64_R_SYM(entry->r_info) != 0;
}

/* A lazy reference points into its own object until the first call. */
static void bind_entry(const struct object *object, const ElfW(Rela) * entry) {
    if (!is_reference(entry)) return;
    const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(entry->r_info)];
    const char *name = object->strings + symbol->st_name;
    if (symbol->st_shndx != SHN_UNDEF || !is_relevant(name)) return;
    void **slot = (void **)(object->base + entry->r_offset);
    void *present = __atomic_load_n(slot, __ATOMIC_RELAXED);
    bool is_lazy = (ElfW(Addr))present >= object->first && (ElfW(Addr))present < object->end;
    void *wanted = object->replacement(name, is_lazy ? NULL : present);
    if (wanted && wanted != present) write_slot(object, slot, wanted);
}

/* NOLINTEND(performance-no-int-to-ptr) */

static int visit(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    const relocations_replacement *replacement = (const relocations_replacement *)argument;
    struct object object = {.base = info->dlpi_addr, .replacement = *replacement};
    for (int i = 0; i < info->dlpi_phnum; i++) read_segment(&object, &info->dlpi_phdr[i]);
    if (!object.symbols || !object.strings || is_ours(&object)) return 0;
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; object.tables[table] && i < object.sizes[table] / sizeof(ElfW(Rela)); i++)
            bind_entry(&object, &object.tables[table][i]);
    return 0;
}

void relocations_bind(relocations_replacement replacement) { LIBC(dl_iterate_phdr)(visit, (void *)&replacement); }
