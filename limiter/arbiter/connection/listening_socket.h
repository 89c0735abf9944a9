/* The file `arbiter/socket` in a container's directory, at which its processes connect. */
#ifndef VGPU_ARBITER_CONNECTION_LISTENING_SOCKET_H
#define VGPU_ARBITER_CONNECTION_LISTENING_SOCKET_H

#include <sys/types.h>

/* Creates the socket in the container's directory, in place of one that a previous arbiter left. Returns a listening
 * descriptor; -1 if there is no directory `arbiter`, or nothing can be created in it (logged). */
int listening_socket_open(int container_fd);

/* The inode of the socket file; 0 if there is none. */
ino_t listening_socket_inode(int container_fd);

/* Removes the socket file if it has that inode; another arbiter may have replaced it. */
void listening_socket_unlink(int container_fd, ino_t inode);

#endif
