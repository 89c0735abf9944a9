/* Text: numbers and copies. */
#ifndef VGPU_COMMON_TEXT_H
#define VGPU_COMMON_TEXT_H

#include <stdint.h>

/* The decimal number at the beginning of a text, after spaces; 0 where there is none. */
uint64_t text_number(const char *text);

/* The hexadecimal number at the beginning of a text, after spaces; 0 where there is none. */
uint64_t text_hex(const char *text);

/* Appends to a text, in whose array there must be room, and returns the text. */
char *text_append(char *text, const char *more);
char *text_append_number(char *text, uint64_t number);

/* A copy that is never freed; NULL where memory is exhausted. */
char *text_copy(const char *text);

#endif
