#include "compute/link/arbiter_handshake.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "common/system_calls.h"
#include "container/container.h"

/* The C library that we build for (glibc 2.17) does not define these. */
#ifndef F_GET_SEALS
#define F_GET_SEALS   1034
#define F_SEAL_SHRINK 0x0002
#endif

static bool is_retryable(ssize_t result) { return result == -EAGAIN || result == -EINTR; }

static ssize_t send_now(int fd, const void *bytes, size_t size) {
    return system_send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int connect_to(const struct sockaddr_un *address) {
    int fd = system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || system_connect(fd, (const struct sockaddr *)address, sizeof *address) == 0) return fd;
    system_close(fd);
    return -1;
}

static uint32_t abilities(void) {
    return ARBITRATION_JOINS | (container_is_space_client() ? (uint32_t)ARBITRATION_IN_SPACE : 0);
}

int arbiter_handshake_send_hello(const char *path, const uint8_t uuid[UUID_SIZE]) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct arbitration_hello hello = {.version = ARBITRATION_VERSION, .abilities = abilities()};
    if (strlen(path) >= sizeof address.sun_path || system_exists(path) != 0) return -1;
    memcpy(address.sun_path, path, strlen(path));
    memcpy(hello.magic, ARBITRATION_MAGIC, sizeof hello.magic);
    memcpy(hello.uuid, uuid, UUID_SIZE);
    int fd = connect_to(&address);
    if (fd < 0 || send_now(fd, &hello, sizeof hello) == (ssize_t)sizeof hello) return fd;
    system_close(fd);
    return -1;
}

static int received_descriptor(struct msghdr *message) {
    int fd = -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int)))
            memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

/* Refuses a file that is shorter than a page or could be shortened later: reading it would end in SIGBUS. */
static bool is_sealed_page(int fd) {
    struct stat status = {0};
    int seals = fd < 0 ? -1 : system_fcntl(fd, F_GET_SEALS, 0);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && system_fstat(fd, &status) == 0 &&
           status.st_size >= (off_t)sizeof(struct arbitration_page);
}

static void *map_page(int fd) {
    size_t size = sizeof(struct arbitration_page);
    return is_sealed_page(fd) ? system_map(size, PROT_READ, MAP_SHARED, fd) : MAP_FAILED;
}

static bool is_welcome(const struct arbitration_welcome *welcome) {
    return memcmp(welcome->magic, ARBITRATION_MAGIC, sizeof welcome->magic) == 0 &&
           welcome->version == ARBITRATION_VERSION && welcome->result == ARBITRATION_ACCEPTED;
}

enum handshake arbiter_handshake_receive_welcome(int fd, void **page) {
    struct arbitration_welcome welcome = {0};
    union {
        struct cmsghdr aligned;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec vector = {&welcome, sizeof welcome};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = system_recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got <= 0) return is_retryable(got) ? HANDSHAKE_PENDING : HANDSHAKE_LOST;
    int file = received_descriptor(&message);
    *page = got == (ssize_t)sizeof welcome && is_welcome(&welcome) ? map_page(file) : MAP_FAILED;
    if (file >= 0) system_close(file);
    return *page == MAP_FAILED ? HANDSHAKE_REFUSED : HANDSHAKE_ACCEPTED;
}

bool arbiter_handshake_send_message(int fd, const struct arbitration_message *message) {
    ssize_t sent = send_now(fd, message, sizeof *message);
    return sent == (ssize_t)sizeof *message || is_retryable(sent);
}

bool arbiter_handshake_is_lost(int fd) {
    char nothing;
    ssize_t got = system_recv(fd, &nothing, sizeof nothing, MSG_DONTWAIT);
    return got == 0 || (got < 0 && !is_retryable(got));
}
