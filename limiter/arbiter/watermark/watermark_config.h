/* The file of --config: lines `GPU-uuid HIGH LOW` with the watermarks of best-effort tenants for a card, in percent of
 * its time, LOW below HIGH. A line for `*` applies to every card without one of its own. Empty lines and lines that
 * begin with `#` are ignored. Without a line, a card's watermarks are 90 and 70. */
#ifndef VGPU_ARBITER_WATERMARK_WATERMARK_CONFIG_H
#define VGPU_ARBITER_WATERMARK_WATERMARK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/gpu_uuid.h"

/* Percent of the card's time that the other tenants use (watermark.h). */
struct levels {
    unsigned high, low;
};

/* Replaces the configuration by the zero-terminated text of a file. False if a line is not valid or there are more than
 * 128: then the configuration stays, and `*line` is the number of the line. */
bool watermark_config_parse(const char *text, unsigned *line);

/* Reads the file if it has changed since the last call; true if the configuration was replaced. A file that cannot be
 * read or parsed is logged, and the configuration stays; a missing file is not logged. */
bool watermark_config_read(const char *path);

/* The watermarks of a card. */
struct levels watermark_config_levels(const uint8_t uuid[UUID_SIZE]);

#endif
