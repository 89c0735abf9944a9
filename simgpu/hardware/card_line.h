/* The parser of one line of the file `cards`. */
#ifndef SIMGPU_HARDWARE_CARD_LINE_H
#define SIMGPU_HARDWARE_CARD_LINE_H

#include <stdbool.h>

#include "hardware/card.h"

/* Parses the line, which the parser changes. Returns false when any part is malformed, unknown or missing. */
bool card_line_parse(char *line, struct card *card);

#endif
