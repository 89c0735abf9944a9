#include "loader/elf.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/own_strings.h"

#if defined(__x86_64__)
#define MUSL "ld-musl-x86_64.so.1"
#elif defined(__aarch64__)
#define MUSL "ld-musl-aarch64.so.1"
#endif

/* The loaders' lists of loaded objects: glibc's, which glibc's header declares, and musl's, which has the same form.
 * Weak, because a process has only one of the two symbols, and so that the library does not come to need glibc's
 * loader by name.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*) */
#pragma weak _r_debug
extern const struct r_debug *const _dl_debug_addr __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl*) */

struct search {
    const char *library;
    const char *symbol;
    void *found;
};

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
};

static uint32_t gnu_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static bool is_match(const struct tables *tables, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &tables->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && own_strings_are_equal(tables->strings + symbol->st_name, name);
}

/* A GNU hash table consists of four counts, a Bloom filter, buckets, and chains whose last hash has bit 0 set. */
static const ElfW(Sym) * lookup(const struct tables *tables, const char *name) {
    uint32_t bucket_count = tables->hash[0];
    uint32_t first = tables->hash[1];
    const uint32_t *buckets = tables->hash + 4 + tables->hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + bucket_count;
    uint32_t hash = gnu_hash(name);
    uint32_t index = buckets[hash % bucket_count];
    if (index < first) return NULL;
    for (;; index++) {
        uint32_t chain_hash = chain[index - first];
        if ((chain_hash | 1) == (hash | 1) && is_match(tables, index, name)) return &tables->symbols[index];
        if (chain_hash & 1) return NULL;
    }
}

/* glibc relocates the addresses in the dynamic section of a loaded object; musl leaves offsets from `base`. */
static void *address_of(ElfW(Addr) base, ElfW(Addr) value) {
    return (void *)(value < base ? base + value : value); /* NOLINT(performance-no-int-to-ptr) */
}

static struct tables read_tables(ElfW(Addr) base, const ElfW(Dyn) * dynamic) {
    struct tables tables = {0};
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB) tables.symbols = address_of(base, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_STRTAB) tables.strings = address_of(base, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_GNU_HASH) tables.hash = address_of(base, dynamic->d_un.d_ptr);
    }
    return tables;
}

/* NULL also where the object has no GNU hash table, such as the kernel's vDSO. */
static const ElfW(Sym) * lookup_in_object(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *name) {
    struct tables tables = read_tables(base, dynamic);
    return tables.symbols && tables.strings && tables.hash ? lookup(&tables, name) : NULL;
}

static void search_object(struct search *search, const char *path, ElfW(Addr) base, const ElfW(Dyn) * dynamic) {
    if (!path || !dynamic || !own_strings_are_equal(own_strings_file_name(path), search->library)) return;
    const ElfW(Sym) *symbol = lookup_in_object(base, dynamic, search->symbol);
    if (symbol) search->found = address_of(0, base + symbol->st_value);
}

/* Loaded objects that nothing unloads, such as the C library, stay at their place of the list, so it is read without
 * the loader's lock. */
static void search_list(struct search *search, const struct link_map *first) {
    for (const struct link_map *object = first; object && !search->found; object = object->l_next)
        search_object(search, object->l_name, object->l_addr, object->l_ld);
}

static const struct link_map *first_object(void) {
    if (&_r_debug) return _r_debug.r_map;
    return &_dl_debug_addr ? _dl_debug_addr->r_map : NULL;
}

const struct link_map *elf_loaded_objects(void) {
    const struct link_map *first = first_object();
    for (const struct link_map *object = first; object; object = object->l_next)
        if (object->l_ld == _DYNAMIC) return first;
    return NULL;
}

bool elf_is_defined_before(const char *symbol) {
    for (const struct link_map *object = elf_loaded_objects(); object && object->l_ld != _DYNAMIC;
         object = object->l_next)
        if (object->l_ld && lookup_in_object(object->l_addr, object->l_ld, symbol)) return true;
    return false;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return address_of(0, object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static int visit(struct dl_phdr_info *object, size_t size, void *search) {
    (void)size;
    search_object(search, object->dlpi_name, object->dlpi_addr, dynamic_of(object));
    return ((struct search *)search)->found != NULL;
}

/* Before glibc 2.34, threads are in libpthread, of whose functions libc has incomplete ones, and dlsym is in libdl.
 * musl is searched too, because LD_PRELOAD also loads the library into programs that are linked with musl.
 *
 * dl_iterate_phdr shows the objects of this library's namespace, but in the program's namespace it may be a sanitizer's
 * function, which crashes before the sanitizer has looked up, by our dlsym, what it calls. */
void *elf_find_symbol(const char *symbol) {
    static const char *const libraries[] = {"libpthread.so.0", "libc.so.6", "libdl.so.2", MUSL};
    const struct link_map *list = elf_loaded_objects();
    struct search search = {.symbol = symbol};
    for (size_t i = 0; !search.found && i < sizeof libraries / sizeof *libraries; i++) {
        search.library = libraries[i];
        if (list)
            search_list(&search, list);
        else
            dl_iterate_phdr(visit, &search);
    }
    return search.found;
}
