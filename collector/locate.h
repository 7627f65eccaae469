/*
 * locate.h - where libmlprof.so is, seen from this very executable: in the build tree beside it, else installed.
 */
#ifndef LOCATE_H
#define LOCATE_H

#include <stdbool.h>
#include <stddef.h>

bool locate_library(char *path, size_t size);   /* false: not there, and that was said */

#endif
