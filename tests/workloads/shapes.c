// cc: -O2 -fno-optimize-sibling-calls
/*
 * shapes.c - stacks of all shapes: frames that grow with alloca, over-aligned ones, with a frame pointer and without,
 * one way down after another, so that stacks part and meet again at every depth.
 */
#include "expect.h"
#include <alloca.h>

enum { SLOTS = 64, BLOCKS = 30000, DEEP = 400 };

static uint64_t state = 1;
static void *slot[SLOTS];
static int blocks;

#define SHAPE(name, ...)                                                                               \
	__attribute__((noinline, ##__VA_ARGS__)) static void name(int left)

static void down(int left);

__attribute__((noinline)) static void leaf(void)
{
	uint32_t r = dice(&state);

	free(slot[r % SLOTS]);
	slot[r % SLOTS] = used(malloc(1 + (r >> 8) % 100));
	blocks++;
}

/* Further down, and perhaps a block of its own on the way back. */
static inline __attribute__((always_inline)) void go_on(int left, char *room)
{
	*room = 1;
	__asm__ volatile("" : : "r"(room) : "memory");
	down(left - 1);
	if (dice(&state) % 4 == 0)
		leaf();
	__asm__ volatile("" : : "r"(room) : "memory");
}

SHAPE(plain) { char room[24]; go_on(left, room); }
SHAPE(grown) { go_on(left, alloca(16 + dice(&state) % 8 * 16)); }
SHAPE(aligned) { char room[64] __attribute__((aligned(64))); go_on(left, room); }
SHAPE(pointed, optimize("no-omit-frame-pointer")) { char room[40]; go_on(left, room); }

__attribute__((noinline)) static void down(int left)
{
	static void (*const shapes[])(int) = { plain, grown, aligned, pointed };

	if (left > 0)
		shapes[dice(&state) % 4](left);
	else
		leaf();
	__asm__ volatile("");
}

int main(void)
{
	while (blocks < BLOCKS)
		down(dice(&state) % 40);
	down(DEEP);
	for (int i = 0; i < SLOTS; i++)
		free(slot[i]);
	return 0;
}
