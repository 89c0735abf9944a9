#include "arbiter/connection/client_page.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_ADD_SEALS
#define F_ADD_SEALS   1033
#define F_SEAL_SEAL   0x0001
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_GROW   0x0004
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { PAGE_SIZE = 4096 };

/* A client that is root could open the descriptor it was given for writing, unless F_SEAL_FUTURE_WRITE (Linux 5.1)
 * forbids it. The seal against shrinking is required: a shortened file would end the arbiter with SIGBUS. */
static bool seal(int fd) {
    int size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    return fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE) == 0 || fcntl(fd, F_ADD_SEALS, size) == 0;
}

static int reopen_read_only(int fd) {
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static struct arbitration_page *create_mapping(int fd) {
    if (ftruncate(fd, PAGE_SIZE) != 0 || fchmod(fd, 0400) != 0) return NULL;
    void *page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) return NULL;
    if (seal(fd)) return page;
    munmap(page, PAGE_SIZE);
    return NULL;
}

struct arbitration_page *client_page_create(int *fd) {
    int memfd = (int)syscall(SYS_memfd_create, "vgpu-turns", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0) return NULL;
    struct arbitration_page *page = create_mapping(memfd);
    *fd = page ? reopen_read_only(memfd) : -1;
    close(memfd);
    if (page && *fd < 0) client_page_close(page);
    return *fd < 0 ? NULL : page;
}

void client_page_close(struct arbitration_page *page) { munmap(page, PAGE_SIZE); }

static bool is_wakeup_needed(const struct arbitration_page *page, const struct arbitration_page *content) {
    return page->turn != content->turn || page->yield_turn != content->yield_turn ||
           page->contended != content->contended;
}

void client_page_publish(struct arbitration_page *page, const struct arbitration_page *content) {
    bool needs_wakeup = is_wakeup_needed(page, content);
    __atomic_store_n(&page->budget_ns, content->budget_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&page->depth_ns, content->depth_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&page->free_at, content->free_at, __ATOMIC_RELAXED);
    __atomic_store_n(&page->joint, content->joint, __ATOMIC_RELAXED);
    __atomic_store_n(&page->job, content->job, __ATOMIC_RELAXED);
    __atomic_store_n(&page->job_spans, content->job_spans, __ATOMIC_RELAXED);
    __atomic_store_n(&page->job_batches, content->job_batches, __ATOMIC_RELAXED);
    __atomic_store_n(&page->job_awaited, content->job_awaited, __ATOMIC_RELAXED);
    __atomic_store_n(&page->end_by, content->end_by, __ATOMIC_RELAXED);
    __atomic_store_n(&page->fallback_percent, content->fallback_percent, __ATOMIC_RELAXED);
    __atomic_store_n(&page->contended, content->contended, __ATOMIC_RELAXED);
    __atomic_store_n(&page->yield_turn, content->yield_turn, __ATOMIC_RELEASE);
    __atomic_store_n(&page->turn, content->turn, __ATOMIC_RELEASE);
    if (needs_wakeup) syscall(SYS_futex, &page->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void client_page_write_heartbeat(struct arbitration_page *page, uint64_t now) {
    __atomic_store_n(&page->heartbeat_at, now, __ATOMIC_RELAXED);
}
