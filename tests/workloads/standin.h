/*
 * standin.h - a device that is none, for libraries that cannot run here: what is handed to it takes as long as it is told, one
 * piece after the other, and it keeps books by CLOCK_MONOTONIC.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct { char name[64]; unsigned long start, end; } standin_book[256];
static int standin_books;
static unsigned long standin_free;      /* from when on it has nothing to do */

static unsigned long standin_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void standin_hand(const char *name, unsigned us)
{
	unsigned long now = standin_now(), start = now > standin_free ? now : standin_free;

	snprintf(standin_book[standin_books].name, sizeof(standin_book[0].name), "%s", name);
	standin_book[standin_books].start = start;
	standin_book[standin_books++].end = standin_free = start + us * 1000ul;
}

static void standin_wait(void)
{
	while (standin_now() < standin_free)
		usleep((unsigned)((standin_free - standin_now()) / 1000 + 1));
}

static inline void standin_print(void)
{
	for (int i = 0; i < standin_books; i++)
		printf("ran %s %lu %lu\n", standin_book[i].name, standin_book[i].start, standin_book[i].end);
}

#endif
