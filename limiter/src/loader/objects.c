#include "loader/objects.h"

#include <link.h>
#include <stddef.h>

#include "loader/libc.h"

struct search {
    ElfW(Addr) address;
    struct loaded_object *found;
    bool is_found;
};

static bool contains(const struct dl_phdr_info *object, ElfW(Addr) address) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && address - object->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

/* NOLINTBEGIN(performance-no-int-to-ptr): addresses in ELF tables are numbers */

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* glibc relocates the addresses in the dynamic section of a loaded object; musl leaves offsets from its base. */
static const char *soname_of(ElfW(Addr) base, const ElfW(Dyn) * entry) {
    ElfW(Addr) strings = 0, offset = 0;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
        if (entry->d_tag == DT_SONAME) offset = entry->d_un.d_val;
    }
    if (!strings || !offset) return NULL;
    return (const char *)(strings < base ? base + strings : strings) + offset;
}

/* NOLINTEND(performance-no-int-to-ptr) */

static int visit(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    if (!contains(object, search->address)) return 0;
    search->found->path = object->dlpi_name;
    search->found->soname = soname_of(object->dlpi_addr, dynamic_of(object));
    search->is_found = true;
    return 1;
}

bool objects_find(const void *address, struct loaded_object *object) {
    struct search search = {(ElfW(Addr))address, object, false};
    LIBC(dl_iterate_phdr)(visit, &search);
    return search.is_found;
}
