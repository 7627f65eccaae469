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
#include <string.h>

struct buf {
	char *at;
	size_t used, room;
	bool failed;
};

bool buf_reserve(struct buf *b, size_t more);   /* false: no memory */
void buf_repeat(struct buf *b, char c, int times);
void buf_print(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void buf_add(struct buf *b, const char *bytes, size_t count)
{
	if (count >= b->room - b->used && !buf_reserve(b, count))
		return;
	memcpy(b->at + b->used, bytes, count);
	b->used += count;
	b->at[b->used] = 0;
}

static inline void buf_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

static inline void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_word(struct buf *b, const char *text, size_t length);  /* as a shell would take it: quoted where it must be */
int buf_write(const struct buf *b, int fd);     /* all of it; 0 or -errno */
void buf_release(struct buf *b);

#endif
