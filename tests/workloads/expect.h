/*
 * expect.h - a workload says what must be seen of it.
 *
 * Lines "expect KEY VALUE" go to stdout; KEY is a path in the summary's JSON. Saying it takes no memory from
 * malloc, as printf and dprintf do.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
	char line[1024];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	if (write(1, line, length) != length)
		_exit(111);
}

static inline void expect(const char *key, long long value)
{
	say("expect %s %lld\n", key, value);
}

/* What a program knows of its own memory. */
struct books {
	long long allocs, frees, allocated, live, blocks, peak;
};

static inline void books_alloc(struct books *b, size_t size)
{
	b->allocs++;
	b->allocated += size;
	b->blocks++;
	b->live += size;
	if (b->live > b->peak)
		b->peak = b->live;
}

static inline void books_free(struct books *b, size_t size)
{
	b->frees++;
	b->blocks--;
	b->live -= size;
}

/* A realloc changes the bytes in one step. */
static inline void books_realloc(struct books *b, size_t before, size_t after)
{
	b->allocs++;
	b->frees++;
	b->allocated += after;
	b->live += (long long)after - (long long)before;
	if (b->live > b->peak)
		b->peak = b->live;
}

static inline void books_say(const struct books *b)
{
	expect("totals.allocs", b->allocs);
	expect("totals.frees", b->frees);
	expect("totals.allocated_bytes", b->allocated);
	expect("totals.live_at_exit_bytes", b->live);
	expect("totals.live_at_exit_blocks", b->blocks);
	expect("pools.malloc.allocs", b->allocs);
	expect("pools.malloc.frees", b->frees);
	expect("pools.malloc.live_at_exit_bytes", b->live);
	expect("pools.malloc.peak_bytes", b->peak);
	expect("peak.bytes", b->peak);
}

/* A fixed sequence: the same in every run. */
static inline uint32_t dice(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* The optimiser may not remove a malloc whose block it sees nobody use. */
static inline void *used(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

#endif
