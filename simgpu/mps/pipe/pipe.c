#include "mps/pipe/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/tmp/nvidia-mps"
#define SOCKET_NAME       "control"
#define WAITING           8 /* connections that the daemon has not accepted */

bool pipe_path(char out[PIPE_PATH_SIZE], const char *name) {
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    if (!directory || *directory == '\0') directory = DEFAULT_DIRECTORY;
    return snprintf(out, PIPE_PATH_SIZE, "%s/%s", directory, name) < PIPE_PATH_SIZE;
}

static int open_socket(struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    bool fits = pipe_path(address->sun_path, SOCKET_NAME);
    return fits ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
}

static bool exchange(int fd, const char *line, char *answer, size_t size) {
    size_t length = 0;
    memset(answer, 0, size);
    ssize_t got = send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line) ? 1 : 0;
    while (got > 0 && length + 1 < size) {
        got = recv(fd, answer + length, size - length - 1, 0);
        length += got > 0 ? (size_t)got : 0;
    }
    return length > 0 || got == 0;
}

bool pipe_ask(const char *line, char *answer, size_t size) {
    struct sockaddr_un address;
    int fd = open_socket(&address);
    if (fd < 0) return false;
    bool is_answered = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    is_answered = is_answered && exchange(fd, line, answer, size);
    close(fd);
    return is_answered;
}

int pipe_listen(void) {
    struct sockaddr_un address;
    int fd = open_socket(&address);
    if (fd < 0) return -1;
    unlink(address.sun_path); /* of a daemon that was killed */
    bool listens = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, WAITING) == 0;
    if (listens && chmod(address.sun_path, 0666) == 0) return fd; /* clients run as any user */
    close(fd);
    return -1;
}
