/*
 * glob.h - names with wildcards: '*' stands for any characters, '?' for one.
 */
#ifndef PROBE_GLOB_H
#define PROBE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_fits(const char *glob, const char *text);
/* What the first '*' stands for, as little as possible; *length is 0 if there is none or the text does not fit. */
const char *glob_wild(const char *glob, const char *text, size_t *length);

#endif
