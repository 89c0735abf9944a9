/* Environment variables, read and written without functions that another library may replace. */
#ifndef VGPU_COMMON_ENVIRONMENT_H
#define VGPU_COMMON_ENVIRONMENT_H

#include <stdbool.h>

/* The value of a variable; NULL where it is not set. A program that has more rights than its caller (AT_SECURE) must
 * not believe it. */
const char *environment_find(const char *name);

/* Sets a variable for this process, and for programs that it starts; false where memory is exhausted. The former list
 * of variables is never freed, because another thread may be reading it. The caller serialises the calls. */
bool environment_set(const char *name, const char *value);

#endif
