/*
 * written.h - what a test's session becomes: a summary beside its trace, with parts that must be in it.
 */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "../../collector/write/summary.h"
#include "tap.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void has(const char *text, const char *part)
{
	ok(strstr(text, part), "%s", part);
}

/* The summary, also left beside the trace. */
static void summary(const char *path, const char *suffix, const struct session *s, struct symbols *y, const char *const *parts)
{
	static char text[1 << 18];
	char name[4096];
	int fd;
	ssize_t n;

	snprintf(name, sizeof(name), "%.*s%s", (int)(strlen(path) - strlen(".perfetto-trace")), path, suffix);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ok(!(strstr(suffix, "json") ? summary_json(fd, s, y) : summary_text(fd, s, y, false)), "%s is written", suffix);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	while (*parts)
		has(text, *parts++);
}

#endif
