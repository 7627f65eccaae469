/*
 * place.h - the private directory of a session: made, swept after collectors that were killed, removed.
 */
#ifndef PLACE_H
#define PLACE_H

#include <stddef.h>

/* Makes the directory and locks it for as long as *fd is open. 0 or an errno. */
int place_make(char *dir, size_t size, int *fd);
int place_file(int fd, const char *name, const void *bytes, size_t length);     /* a file in it, whole or not at all; 0 or an errno */
void place_remove(const char *dir, int fd);

#endif
