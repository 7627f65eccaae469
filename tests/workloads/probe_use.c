/*
 * probe_use: a library (-DLIBRARY) as somebody might write rows for, and a program that uses it and keeps books: an allocator that
 * moves blocks, numbers without a sign, counters that are no number.
 */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *u_give(size_t size);
void *u_move(void *block, size_t size);
void u_take(void *block);
uint64_t u_number(uint64_t n);
void u_level(double value);
void u_one(void);
void u_two(void);

#ifdef LIBRARY
static _Alignas(64) char memory[64][4096];
static int next;

void *u_give(size_t size) { return size <= sizeof memory[0] ? memory[next++ % 64] : NULL; }
void u_take(void *block) { (void)block; }
uint64_t u_number(uint64_t n) { return ~n; }
void u_level(double value) { (void)value; }
void u_one(void) { }
void u_two(void) { }

/* As realloc: sizes of up to 100 bytes stay where they are. */
void *u_move(void *block, size_t size)
{
	if (!size)
		return NULL;
	return block && size <= 100 ? block : u_give(size);
}
#else

static int64_t live, peak;

static void count(int64_t bytes)
{
	live += bytes;
	peak = live > peak ? live : peak;
}

int main(void)
{
	void *a = u_give(1000), *b, *c;

	count(1000);
	b = u_move(NULL, 50);           /* an allocation */
	count(50);
	if (u_move(b, 80) != b)         /* it grows where it is */
		return 1;
	count(30);
	c = u_move(b, 3000);            /* it moves */
	count(3000 - 80);
	if (u_move(c, 5000))            /* it cannot, and stays */
		return 2;
	u_move(a, 0);                   /* an end */
	count(-1000);
	u_move(u_give(7), 8);
	count(8);
	u_take(c);
	count(-3000);
	printf("live %" PRId64 " peak %" PRId64 "\n", live, peak);

	for (int i = 0; i < 64; i += 21)
		u_number(UINT64_MAX >> i);
	u_level(-2.5);
	u_level(NAN);
	u_level(1e300);
	u_level(INFINITY);
	u_one();
	u_two();
	u_two();
	return 0;
}
#endif
