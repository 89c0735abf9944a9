#include "common/vdso.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tables of the vDSO. Kernels have either of the two hash tables, or both; only the number of symbols is read from
 * them, because a vDSO has about ten. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *sysv_hash; /* DT_HASH; NULL: none */
    const uint32_t *gnu_hash;  /* DT_GNU_HASH; NULL: none */
};

/* NOLINTBEGIN(performance-no-int-to-ptr): addresses in ELF tables are numbers */

static void *at(unsigned long address) { return (void *)address; }

/* What is to be added to an address in the image's tables: they are made for another place. */
static unsigned long bias_of(const ElfW(Ehdr) * image, const ElfW(Phdr) * *dynamic) {
    const ElfW(Phdr) *segments = at((unsigned long)image + image->e_phoff);
    unsigned long bias = 0;
    bool is_known = false;
    for (int i = 0; i < image->e_phnum; i++) {
        if (segments[i].p_type == PT_DYNAMIC) *dynamic = &segments[i];
        if (segments[i].p_type != PT_LOAD || is_known) continue;
        bias = (unsigned long)image + segments[i].p_offset - segments[i].p_vaddr;
        is_known = true;
    }
    return bias;
}

static struct tables read_tables(unsigned long bias, const ElfW(Dyn) * entry) {
    struct tables tables = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) tables.symbols = at(bias + entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) tables.strings = at(bias + entry->d_un.d_ptr);
        if (entry->d_tag == DT_HASH) tables.sysv_hash = at(bias + entry->d_un.d_ptr);
        if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = at(bias + entry->d_un.d_ptr);
    }
    return tables;
}

/* A GNU hash table does not say how many symbols there are: the last one is where the last chain ends. */
static uint32_t count_by_gnu_hash(const uint32_t *hash) {
    uint32_t bucket_count = hash[0], first = hash[1], last = 0;
    const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + bucket_count;
    for (uint32_t i = 0; i < bucket_count; i++)
        if (buckets[i] > last) last = buckets[i];
    if (last < first) return 0;
    while (!(chain[last - first] & 1)) last++;
    return last + 1;
}

static uint32_t count_of(const struct tables *tables) {
    if (tables->sysv_hash) return tables->sysv_hash[1];
    return tables->gnu_hash ? count_by_gnu_hash(tables->gnu_hash) : 0;
}

static bool is_equal(const char *text, const char *other) {
    for (; *text && *text == *other; text++) other++;
    return *text == *other;
}

void *vdso_find(unsigned long image, const char *name) {
    const ElfW(Phdr) *dynamic = NULL;
    if (image == 0) return NULL;
    unsigned long bias = bias_of(at(image), &dynamic);
    if (!dynamic) return NULL;
    struct tables tables = read_tables(bias, at(bias + dynamic->p_vaddr));
    if (!tables.symbols || !tables.strings) return NULL;
    for (uint32_t i = 0; i < count_of(&tables); i++) {
        const ElfW(Sym) *symbol = &tables.symbols[i];
        if (symbol->st_shndx != SHN_UNDEF && is_equal(tables.strings + symbol->st_name, name))
            return at(bias + symbol->st_value);
    }
    return NULL;
}

/* NOLINTEND(performance-no-int-to-ptr) */
