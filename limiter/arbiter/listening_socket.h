/* The socket in a container's `arbiter` directory. */
#ifndef VGPU_ARBITER_LISTENING_SOCKET_H
#define VGPU_ARBITER_LISTENING_SOCKET_H

#include <sys/types.h>

/* Makes the socket, in the place of what a former arbiter left. Returns a descriptor that listens, or -1 where there is
 * no such directory or nothing can be made in it. */
int listening_socket_open(int container_fd);

/* Of the socket that is there, 0 where there is none. */
ino_t listening_socket_inode(int container_fd);

/* Takes the socket away, where it is that one. */
void listening_socket_unlink(int container_fd, ino_t inode);

#endif
