/* buf.c - text that grows. */
#include "buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { USUAL_BYTES = 64 };

bool buf_reserve(struct buf *b, size_t more)
{
	size_t need = b->used + more + 1;

	if (b->failed || need <= b->room)
		return !b->failed;
	size_t room = need * 2;
	char *at = realloc(b->at, room);

	b->failed = !at;
	b->room = at ? room : b->used;          /* none: buf_add() asks again */
	b->at = at ? at : b->at;
	return at;
}

void buf_repeat(struct buf *b, char c, int times)
{
	while (times-- > 0)
		buf_char(b, c);
}

/* Most texts fit at the first try. */
void buf_print(struct buf *b, const char *format, ...)
{
	int count;

	for (size_t more = USUAL_BYTES; buf_reserve(b, more); more = count) {
		size_t room = b->room - b->used;
		va_list args;

		va_start(args, format);
		count = vsnprintf(b->at + b->used, room, format, args);
		va_end(args);
		if (count < 0 || (size_t)count < room) {
			b->used += count < 0 ? 0 : count;
			return;
		}
	}
}

static bool is_plain_word(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!text[i] || strchr(" \t\n'\"\\$&|;<>()*?[]~#`!", text[i]))
			return false;
	return length;
}

void buf_word(struct buf *b, const char *text, size_t length)
{
	if (is_plain_word(text, length)) {
		buf_add(b, text, length);
		return;
	}
	buf_char(b, '\'');
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\'')
			buf_text(b, "'\\''");
		else
			buf_char(b, text[i]);
	}
	buf_char(b, '\'');
}

int buf_write(const struct buf *b, int fd)
{
	for (size_t done = 0; done < b->used;) {
		ssize_t n = write(fd, b->at + done, b->used - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? n : 0;
	}
	return b->failed ? -ENOMEM : 0;
}

void buf_release(struct buf *b)
{
	free(b->at);
	*b = (struct buf){ 0 };
}
