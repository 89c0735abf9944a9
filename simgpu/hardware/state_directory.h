/* The directory that holds all state of the simulated GPU: $SIMGPU_STATE, else /run/simgpu. Several processes and
 * containers may share it; ../README.md describes its files. */
#ifndef SIMGPU_HARDWARE_STATE_DIRECTORY_H
#define SIMGPU_HARDWARE_STATE_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#define STATE_PATH_SIZE 4096

/* Writes the path of the file `name` in the state directory. */
void state_directory_path(char out[STATE_PATH_SIZE], const char *name);

/* A number that identifies a file's content, 0 when the file does not exist. `is_settled` is false while the last
 * change is so recent that another one could have the same time stamp: then the number may stand for an older content.
 */
uint64_t file_version(const char *path, bool *is_settled);

#endif
