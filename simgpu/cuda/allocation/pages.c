/* A small allocation takes the first gap of the first page that has room. Measured on an H200 (driver 580): 200
 * allocations of 300 KiB take 68 MiB, six to a page of 2 MiB; a page is given back when its last allocation is freed;
 * arrays have pages of their own. */
#include "cuda/allocation/pages.h"

#include <stdlib.h>

#include "cuda/device/device_memory.h"

#define ADDRESSES UINT64_C(0x10000000000)
#define UNITS     (PAGE / SMALL_UNIT)

struct page {
    struct page *next; /* by address */
    CUdevice device;
    bool for_arrays;
    CUdeviceptr address;
    uint64_t shared_id; /* once an allocation of the page was exported, which shares the whole page; 0 = not shared */
    unsigned used;
    bool is_taken[UNITS];
};

static struct page *pages;

/* The first unit of a gap of `units`; UNITS when the page has no such gap. */
static unsigned find_gap(const struct page *page, unsigned units) {
    unsigned length = 0;
    for (unsigned unit = 0; unit < UNITS; unit++) {
        length = page->is_taken[unit] ? 0 : length + 1;
        if (length == units) return unit + 1 - units;
    }
    return UNITS;
}

static void mark(struct page *page, unsigned first, unsigned units, bool is_taken) {
    for (unsigned unit = first; unit < first + units; unit++) page->is_taken[unit] = is_taken;
    page->used = is_taken ? page->used + units : page->used - units;
}

/* Adds a page at the lowest free address. NULL when out of memory. */
static struct page *add_page(CUdevice device, bool for_arrays) {
    struct page **link = &pages;
    CUdeviceptr address = ADDRESSES;
    struct page *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    while (*link && (*link)->address == address) {
        link = &(*link)->next;
        address += PAGE;
    }
    made->next = *link;
    made->device = device;
    made->for_arrays = for_arrays;
    made->address = address;
    *link = made;
    return made;
}

static struct page *find_page(CUdevice device, bool for_arrays, unsigned units) {
    for (struct page *page = pages; page; page = page->next) {
        bool is_suitable = page->device == device && page->for_arrays == for_arrays;
        if (is_suitable && UNITS - page->used >= units && find_gap(page, units) < UNITS) return page;
    }
    return NULL;
}

static CUresult new_page(CUdevice device, bool for_arrays, struct page **page) {
    CUresult result = device_charge(device, PAGE);
    if (result != CUDA_SUCCESS) return result;
    *page = add_page(device, for_arrays);
    if (!*page) device_release(device, PAGE);
    return *page ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pages_take(CUdevice device, uint64_t bytes, bool for_arrays, CUdeviceptr *address) {
    unsigned units = (unsigned)(bytes / SMALL_UNIT);
    struct page *page = find_page(device, for_arrays, units);
    if (!page) {
        CUresult result = new_page(device, for_arrays, &page);
        if (result != CUDA_SUCCESS) return result;
    }
    unsigned gap = find_gap(page, units);
    mark(page, gap, units, true);
    *address = page->address + (CUdeviceptr)gap * SMALL_UNIT;
    return CUDA_SUCCESS;
}

static struct page **link_of(CUdeviceptr address) {
    struct page **link = &pages;
    while (address - (*link)->address >= PAGE) link = &(*link)->next;
    return link;
}

CUresult page_share(CUdeviceptr address, uint64_t *shared_id) {
    struct page *page = *link_of(address);
    CUresult result = device_share(page->device, PAGE, &page->shared_id);
    *shared_id = page->shared_id;
    return result;
}

uint64_t page_shared_id(CUdeviceptr address) { return (*link_of(address))->shared_id; }

void pages_give_back(CUdeviceptr address, uint64_t bytes) {
    struct page **link = link_of(address);
    struct page *page = *link;
    mark(page, (unsigned)((address - page->address) / SMALL_UNIT), (unsigned)(bytes / SMALL_UNIT), false);
    if (page->used == 0) {
        *link = page->next;
        device_give_back(page->device, PAGE, page->shared_id);
        free(page);
    }
}
