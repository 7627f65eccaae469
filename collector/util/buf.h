/*
 * buf.h - text that grows. Always ended by a NUL once something was added.
 *
 * Lack of memory is remembered, not reported at each call: what comes after is dropped and
 * buf_write() says -ENOMEM.
 */
#ifndef BUF_H
#define BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *at;
	size_t used, room;
	bool failed;
};

void buf_add(struct buf *b, const char *bytes, size_t count);
void buf_text(struct buf *b, const char *text);
void buf_char(struct buf *b, char c);
void buf_repeat(struct buf *b, char c, int times);
void buf_print(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_write(const struct buf *b, int fd);     /* all of it; 0 or -errno */
void buf_release(struct buf *b);

#endif
