/* The file of --config: for each card the watermarks of best effort, in lines `GPU-uuid HIGH LOW`, percent; `*` is
 * every card without a line. */
#ifndef VGPU_ARBITER_WATERMARK_CONFIG_H
#define VGPU_ARBITER_WATERMARK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

struct levels {
    unsigned high, low;
};

/* Reads a file's text, which ends with a zero: pure. False, and nothing is changed, where a line is wrong or there are
 * too many; `*line` is then its number. */
bool watermark_config_parse(const char *text, unsigned *line);

/* Reads the file where it is not the one that was read last; true where something has changed. What cannot be read
 * leaves what holds, and is said in the log. */
bool watermark_config_read(const char *path);

/* What holds for a card. */
struct levels watermark_config_levels(const uint8_t uuid[UUID_SIZE]);

#endif
