/* Log lines on standard error. VGPU_LOG sets the level: `off`, `warn` (the default) or `debug`. Both functions keep
 * errno, and drop the line instead of blocking where standard error cannot take it at once. They drop it too where
 * descriptor 2 is another file than when the program started. */
#ifndef VGPU_COMMON_LOG_H
#define VGPU_COMMON_LOG_H

/* What the user of the program must know, such as an allocation that was refused. At most ten lines a second; the next
 * line after that says how many were suppressed. */
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Details for debugging; written at level `debug` only, without a rate limit. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
