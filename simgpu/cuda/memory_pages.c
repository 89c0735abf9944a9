/* Small allocations share pages of 2 MiB: the first page with room for the whole of it, and in it the first gap.
 * Measured on an H200 (driver 580): 200 x 300 KiB take 68 MiB, six to a page; a page goes back when its last one is
 * freed; arrays have pages of their own. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

#define ADDRESSES UINT64_C(0x10000000000)
#define UNITS     (PAGE / SMALL_UNIT)

typedef struct Page {
    struct Page *next; /* by address */
    CUdevice device;
    bool for_arrays;
    CUdeviceptr address;
    uint64_t share; /* its number once any of it was exported: others open whole pages */
    unsigned used;
    bool taken[UNITS];
} Page;

static Page *pages;

/* The first unit of a gap of so many, UNITS when the page has none. */
static unsigned find_gap(const Page *page, unsigned units) {
    unsigned length = 0;
    for (unsigned unit = 0; unit < UNITS; unit++) {
        length = page->taken[unit] ? 0 : length + 1;
        if (length == units) {
            return unit + 1 - units;
        }
    }
    return UNITS;
}

static void mark(Page *page, unsigned first, unsigned units, bool taken) {
    for (unsigned unit = first; unit < first + units; unit++) {
        page->taken[unit] = taken;
    }
    page->used = taken ? page->used + units : page->used - units;
}

/* At the lowest address no page has. */
static Page *add_page(CUdevice device, bool for_arrays) {
    Page **link = &pages;
    CUdeviceptr address = ADDRESSES;
    Page *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    while (*link != NULL && (*link)->address == address) {
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

static Page *find_page(CUdevice device, bool for_arrays, unsigned units) {
    for (Page *page = pages; page != NULL; page = page->next) {
        bool right = page->device == device && page->for_arrays == for_arrays;
        if (right && UNITS - page->used >= units && find_gap(page, units) < UNITS) {
            return page;
        }
    }
    return NULL;
}

static CUresult new_page(CUdevice device, bool for_arrays, Page **page) {
    CUresult result = device_charge(device, PAGE);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *page = add_page(device, for_arrays);
    if (*page == NULL) {
        device_release(device, PAGE);
    }
    return *page != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pages_take(CUdevice device, uint64_t bytes, bool for_arrays, CUdeviceptr *address) {
    unsigned units = (unsigned)(bytes / SMALL_UNIT);
    Page *page = find_page(device, for_arrays, units);
    if (page == NULL) {
        CUresult result = new_page(device, for_arrays, &page);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    unsigned gap = find_gap(page, units);
    mark(page, gap, units, true);
    *address = page->address + (CUdeviceptr)gap * SMALL_UNIT;
    return CUDA_SUCCESS;
}

static Page **link_of(CUdeviceptr address) {
    Page **link = &pages;
    while (address - (*link)->address >= PAGE) {
        link = &(*link)->next;
    }
    return link;
}

CUresult page_share(CUdeviceptr address, uint64_t *share) {
    Page *page = *link_of(address);
    CUresult result = device_share(page->device, PAGE, &page->share);
    *share = page->share;
    return result;
}

uint64_t page_share_number(CUdeviceptr address) { return (*link_of(address))->share; }

void pages_give(CUdeviceptr address, uint64_t bytes) {
    Page **link = link_of(address);
    Page *page = *link;
    mark(page, (unsigned)((address - page->address) / SMALL_UNIT), (unsigned)(bytes / SMALL_UNIT), false);
    if (page->used == 0) {
        *link = page->next;
        device_give(page->device, PAGE, page->share);
        free(page);
    }
}
