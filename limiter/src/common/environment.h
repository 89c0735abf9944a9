/* Environment variables, read without a function that another library may replace. */
#ifndef VGPU_COMMON_ENVIRONMENT_H
#define VGPU_COMMON_ENVIRONMENT_H

/* The value of a variable; NULL where it is not set. A program that has more rights than its caller (AT_SECURE) must
 * not believe it. */
const char *environment_find(const char *name);

#endif
