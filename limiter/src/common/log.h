/* Lines on standard error, by VGPU_LOG: `off`, `warn` (the default) or `debug`. */
#ifndef VGPU_COMMON_LOG_H
#define VGPU_COMMON_LOG_H

/* What a user must know: limits that cannot be read, allocations refused. At most ten lines a second;
 * the next one after them says how many were left out. */
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
